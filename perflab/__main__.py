"""`python -m perflab` is `perflab`, also in a colcon workspace."""

import sys


def main() -> int:
    """Runs the command of sys.argv; returns its exit code."""
    try:
        from perflab import workspace

        complaint = workspace.prepare()
        if complaint:
            from perflab.errors import Unavailable
            from perflab.output import visible_line

            sys.stderr.write(f"perflab: {visible_line(complaint)}\n")
            return Unavailable.exit_code
        from perflab.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("perflab: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
