"""The lab's error classes. None of them is ever turned into a skip."""


class LabError(Exception):
    """Something that the lab needs is not available: a package, a kernel, a tool."""


class BuildError(LabError):
    """A module did not compile; the message ends with the compiler's output."""


class LostVM(LabError):
    """A VM ended without a verdict: panic, hang, time limit. The message ends with its console.

    output: the script's, if it has a channel of its own. The console alone shows a panic, and the
    output shows how far the script got: the message has the last lines of both.
    """

    def __init__(self, reason: str, console: str, output: str = ""):
        texts = {"output of the script": output, "console": console}
        super().__init__("\n".join(
            [reason, *(f"--- last lines of the {name} ---\n{_tail(text)}"
                       for name, text in texts.items() if text)]
        ))  # fmt: skip
        self.reason = reason
        self.console = f"{console}\n{output}"


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-60:])
