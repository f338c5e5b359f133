"""LoRA, the loss, the loop, the merge."""
