"""litert-torch in a process of its own: `python -P -m export.converter MODEL WORK SETTINGS`.

As it is imported, litert-torch replaces parts of transformers; what was imported before stays as it was. So in a
process that has loaded a Llama model every RMSNorm becomes seven operations, in a fresh one it becomes one
(`odml.rms_norm`): another graph, from the same weights. A fresh process always gives the same; it also takes the
converter's memory with it, and leaves transformers alone in the process that measures the model afterwards.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

FAILURE = "failure.txt"
"""In the work folder: the error's type and message, if there was one."""


def main(model: str, work: str, settings: str) -> None:
    """Leave `model.tflite` (float32) and `executor_metadata.pb` in the folder `work`.

    Args:
        model: folder of the merged model.
        settings: JSON with `prefill_lengths` and `cache_length`.
    """
    from litert_torch.generative.export_hf import export

    # The template and the type come from our own metadata; the bundle that litert-torch packs is not used.
    export.export(
        model=model,
        output_dir=work,
        keep_temporary_files=True,
        # Quantising its float32 graph gives the bytes that it would give; None would mean its default, 8 bits.
        quantization_recipe="none",
        bundle_litert_lm=True,
        use_jinja_template=True,
        **json.loads(settings),
    )


if __name__ == "__main__":
    # Python drops a KeyboardInterrupt that is raised in a callback of its garbage collector, and JAX has one that runs
    # often; so Ctrl-C ends this process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        main(*sys.argv[1:])
    except Exception as error:
        Path(sys.argv[2], FAILURE).write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
        raise
