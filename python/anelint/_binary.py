"""Finds and runs the `anelint` program that the wheel brings along."""
from __future__ import annotations

import os
import shutil
import sys
import sysconfig


def find_binary() -> str:
    """The path of the program: `$ANELINT`, the one beside this module, the one on the `PATH`.

    Raises `FileNotFoundError` if there is none.
    """
    named = os.environ.get("ANELINT")
    if named:
        if os.path.isfile(named):
            return named
        raise FileNotFoundError(f"$ANELINT names {named}, and there is no such file")
    name = "anelint.exe" if sys.platform == "win32" else "anelint"
    folders = [sysconfig.get_path("scripts")]
    scheme = "nt_user" if os.name == "nt" else "osx_framework_user" if sys.platform == "darwin" and sys._framework else "posix_user"
    if scheme in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", scheme=scheme))
    # `pip install --target` puts programs into `bin` beside the package.
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    for folder in folders:
        candidate = os.path.join(folder, name)
        if os.path.isfile(candidate):
            return candidate
    found = shutil.which(name)
    if found:
        return found
    raise FileNotFoundError("no `anelint` program: `pip install anelint`, or set $ANELINT to its path")
