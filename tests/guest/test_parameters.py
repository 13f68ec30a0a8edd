"""Parameters of modules other than the core accept exactly what the documentation says.

Defaults and ranges come from the source of docs/reference/parameters.md. test_load.py tests the
core's parameters.
"""

import pytest
from machines import some

from docs import source

RANGED = {
    module: [p for p in source.parameters(module) if p.range]
    for module in source.modules()
    if module != source.CORE
}


def _values(parameter: source.Parameter) -> tuple[int, int]:
    least, most = parameter.range.split(" to ")
    return int(least), int(most)


def _script() -> str:
    lines = ["unload", "load apic_timer", "taken() { echo $1 took $2 in $3; }"]
    for module, parameters in RANGED.items():
        ko, values = f"$MODULES/{module}.ko", f"/sys/module/{module}/parameters"
        if parameters:
            lines.append(f"insmod {ko}")
        for p in parameters:
            (least, most), file = _values(p), f"{values}/{p.name}"
            lines.append(f"echo default {module} {p.name} $(cat {file})")
            if p.mode & 0o200:
                for right in (least, most):
                    lines.append(f'echo {right} >{file}\n[ "$(cat {file})" = {right} ]')
                for wrong in (least - 1, most + 1, "x"):
                    lines.append(f"! echo {wrong} 2>/dev/null >{file} || taken {p.name} {wrong} "
                                 f'file\n[ "$(cat {file})" = {most} ]')  # fmt: skip
        if parameters:
            lines.append(f"rmmod {module}")
        for p in parameters:
            (least, most), file = _values(p), f"{values}/{p.name}"
            for right in (least, most):
                lines.append(f"insmod {ko} {p.name}={right}\n"
                             f'[ "$(cat {file})" = {right} ]\nrmmod {module}')  # fmt: skip
            for wrong in (least - 1, most + 1, "x"):
                lines.append(f"! insmod {ko} {p.name}={wrong} 2>/dev/null || taken {p.name} "
                             f"{wrong} insmod\n[ ! -d /sys/module/{module} ]")  # fmt: skip
    return "\n".join(lines)


@pytest.mark.long
@pytest.mark.guest(some(cpus=1, engine="virtual", source="proxy"), _script())
def test_others_out_of_range(guest):
    """Rejected when loading, and in sysfs, where the value stays; the limits are accepted."""
    expected = [f"default {module} {p.name} {p.default}" for module, parameters in RANGED.items()
                for p in parameters]  # fmt: skip
    assert len(expected) > 10
    assert guest.ok().splitlines() == expected
