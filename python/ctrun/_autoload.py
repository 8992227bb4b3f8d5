# SPDX-License-Identifier: Apache-2.0
"""The entry point of the group torch.backends, which `import torch` calls: CT_AS_GLOO=1 puts libct in gloo's place."""

import os


def autoload():
    if os.environ.get("CT_AS_GLOO", "") not in ("", "0"):
        import torch.distributed

        if torch.distributed.is_available():
            from ctrun.torch_backend import register_as_gloo

            register_as_gloo()
