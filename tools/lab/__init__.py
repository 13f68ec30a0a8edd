"""The lab: stock Debian kernels, and machines to run them in, without hardware.

Start with one of these; ``python3 -m lab`` runs them by hand (see __main__.py):

    kernel = kernels.ensure("6.1")          a stock kernel, with its compiler, in the cache
    built = build.build(kernel)             this tree's modules, built for it
    virtual.run(kernel, "a shell script")   one instruction is one nanosecond; repeats exactly
    smp.run(kernel, "a shell script")       several CPUs, real races, times mean nothing
    bochs.run(kernel, "a shell script")     TSC deadline, x2APIC, an Intel model; repeats exactly

The rooms, from the bottom up; a file uses its own room and those below (tools/rooms.py checks):

    base/     errors (such as LostVM), the cache, progress, work in the background
    kernels/  Debian's packages, pinned by packages.lock (debian, lock); the stock kernels, each
              with its suite's compiler (kernels, chroot, ccache, vmlinux); kernels built here, from
              Debian's sources and this tree's patches (sources, patches, patched, configs/, deb);
              the guests' programs, in the same version everywhere (unpacked)
    build/    build this tree's modules or a consumer's for a kernel (build); the programs of
              guests (userland, iproute2, jitterdebugger, linuxptp), and those that no package has
              (native); files for guests with a network (network); QEMU's plug-ins, whose
              sources are in plugins/ (plugins)
    engines/  what runs a script in a guest of such a kernel, by name in engines.py, with options
              that options.py explains:
                virtual                           in virtual time
                smp                               on several CPUs, through virtme-ng
                bochs                             in Bochs, started by pvh
                sleeper, hibernator               that suspends to RAM, or to disk
                successor                         in which another kernel takes over, by kexec
                uefi                              with firmware that knows certificates
              shared parts: diskless and qemu run QEMU, image and initramfs make the system of
              a guest (guest/ is what runs inside), splats and result judge it
    bench/    the benchmark: main, a file for each part of it, goals and plots; the traffic shaper's
              benchmark: shaper, shaper_goals, shaper_plots
    run/      other commands of `python3 -m lab`: the demos, the shaper's benchmark, the report with
              figures from plug-ins (modelled, ports), KUnit, torture, renewing the lock

Everything that is fetched or made lives in ~/.cache/apic-timer. Packages are Debian's, from the
mirror that this machine's apt uses. `make lock` renews packages.lock.
"""
