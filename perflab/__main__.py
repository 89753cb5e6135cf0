"""`python -m perflab` is `perflab`."""

import sys

try:
    from perflab.cli import main

    exit_code = main()
except KeyboardInterrupt:
    sys.stderr.write("perflab: interrupted\n")
    exit_code = 130
sys.exit(exit_code)
