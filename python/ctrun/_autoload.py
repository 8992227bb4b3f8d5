# SPDX-License-Identifier: Apache-2.0
"""The entry point of the group torch.backends, which `import torch` calls: it starts the observer, and CT_AS_GLOO=1 puts
libct in gloo's place."""

import os

from ctrun import _observer


def autoload():
    _observer.start_in_rank()
    if os.environ.get("CT_AS_GLOO", "") not in ("", "0"):
        import torch.distributed

        if torch.distributed.is_available():
            from ctrun.torch_backend import register_as_gloo

            register_as_gloo()
