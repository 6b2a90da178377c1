"""`python -m anelint …` runs the program."""
import os
import subprocess
import sys

from ._binary import find_binary

if __name__ == "__main__":
    program = find_binary()
    if sys.platform == "win32":
        # Windows has no exec that keeps the console waiting.
        sys.exit(subprocess.run([program, *sys.argv[1:]]).returncode)
    os.execv(program, [program, *sys.argv[1:]])
