"""From sources to validated, split, tokenised conversations."""
