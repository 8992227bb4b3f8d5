# SPDX-License-Identifier: Apache-2.0
"""python -m ctrun: the launcher, wherever the environment has put it."""

import os
import sys
import sysconfig


def program():
    """Returns the path of this package's ctrun.  It is in the scripts of the environment or of the user, or in
    --target's bin.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
        os.path.join(here, "bin"),
    ]
    for folder in folders:
        if os.path.isfile(os.path.join(folder, "ctrun")):
            return os.path.join(folder, "ctrun")
    sys.exit(f"python -m ctrun: there is no ctrun in {', '.join(folders)}")


if __name__ == "__main__":
    if sys.prefix == sys.base_prefix:  # else ctrun takes that of its virtual environment
        os.environ.setdefault("PYTHON_EXEC", sys.executable)  # scripts run with this Python, as with torchrun
    os.execv(program(), ["ctrun", *sys.argv[1:]])
