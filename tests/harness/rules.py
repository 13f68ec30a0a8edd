"""Run rules in a guest: rules.py MODULE..., started by `rule` of guest.sh.

A rule is a function of one of these modules. Each runs in a process of its own that starts with all
modules loaded, because starting Python and loading them takes seconds in a guest.

A line on standard input is `MODULE RULE`. The rule's output goes to the file `output`, then its
exit status, as in a shell, to the pipe `status`, both in the current directory.
"""

import importlib
import os
import signal
import sys
import traceback
from pathlib import Path


def run(module, name: str) -> int:
    """Run a rule; return its exit status."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            with Path("output").open("w") as output:
                for stream in sys.stdout, sys.stderr:
                    os.dup2(output.fileno(), stream.fileno())
            os.chdir("/")
            module.run(name)
            code = 0
        except BaseException:  # noqa: BLE001 - it must end here
            sys.stdout.flush()  # what it printed before comes before
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    modules = {name: importlib.import_module(name) for name in sys.argv[1:]}
    for line in sys.stdin:
        module, name = line.split()
        status = run(modules[module], name)
        Path("status").write_text(f"{status}\n")


if __name__ == "__main__":
    main()
