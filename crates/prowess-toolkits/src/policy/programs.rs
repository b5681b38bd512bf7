//! Tables of programs that run other programs.

/// Programs that run others, or let who uses them do so. Those whose names end in numbers are
/// here without them.
#[rustfmt::skip]
pub(super) const LAUNCHERS: &[&str] = &[
    "ansible", "ansible-playbook", "apt", "apt-get", "aptitude", "aria2c", "ash", "at", "awk",
    "bash", "batch", "blender", "bpftrace", "builtin", "bundle", "busybox", "bwrap", "bzless",
    "bzmore", "capsh", "cargo", "catchsegv", "ccache", "cgexec", "checkinstall", "choom", "chpst",
    "chronic", "chroot", "chrt", "cmake", "command", "coproc", "crontab", "csh", "ctest",
    "daemonize", "dash", "dbus-launch", "dbus-run-session", "dc", "debconf", "debconf-apt-progress",
    "debugfs", "debuild", "direnv", "distcc", "distrobox", "dnf", "doas", "docker", "doit", "dpkg",
    "dpkg-reconfigure", "dumb-init", "eatmydata", "ed", "editor", "elvish", "emacs", "emacsclient",
    "enable", "entr", "env", "envdir", "envuidgid", "eval", "ex", "exec", "execlineb", "expect",
    "fab", "fakechroot", "fakeroot", "fakeroot-ng", "faketime", "firejail", "fish", "flatpak",
    "flock", "foreman", "ftp", "gawk", "gcore", "gdb", "gdbserver", "gimp", "gnome-terminal",
    "gnuplot", "go", "gosu", "gpg-agent", "gradle", "honcho", "hyperfine", "i386", "ifne", "inv",
    "invoke", "ionice", "irb", "ispell", "jjs", "joe", "journalctl", "jrunscript", "just", "knife",
    "konsole", "ksh", "kubectl", "less", "lesspipe", "lftp", "links", "linux32", "linux64", "lldb",
    "logrotate", "logsave", "lshell", "ltrace", "lxc-execute", "lynx", "m4", "mail", "mailx",
    "make", "man", "mariadb", "mawk", "maxima", "mc", "meson", "mispipe", "mksh", "more", "mosh",
    "most", "mutt", "mvn", "mysql", "nano", "nawk", "nc", "ncat", "ncftp", "nerdctl", "netcat",
    "newgrp", "nice", "ninja", "nix", "nix-shell", "nmap", "nodemon", "nohup", "nologin", "nox",
    "npm", "npx", "nq", "nsenter", "numactl", "nvim", "oksh", "openvpn", "osh", "pager", "parallel",
    "parallel-ssh", "pdksh", "pdsh", "pee", "perf", "pexec", "pg", "pico", "pipenv", "pipx",
    "pkexec", "pnpm", "podman", "poetry", "posh", "powershell", "prlimit", "proot", "psftp", "psql",
    "pssh", "puppet", "pwsh", "rake", "rbash", "rc", "rlogin", "rlwrap", "rpm", "rr", "rsh", "rssh",
    "rsyslogd", "run-mailcap", "run-one", "run-parts", "runc", "runit", "runuser", "rustup",
    "rview", "rvim", "s6-setuidgid", "s6-supervise", "sash", "scalar", "sccache", "scp", "scponly",
    "screen", "script", "scriptlive", "scriptreplay", "sensible-browser", "sensible-editor",
    "sensible-pager", "setarch", "setlock", "setpriv", "setsid", "setuidgid", "sftp", "sg", "sh",
    "slsh", "snap", "socat", "softlimit", "sotruss", "source", "spawn", "sqlite", "ssh",
    "ssh-agent", "ssh-keygen", "sshpass", "start-stop-daemon", "stdbuf", "strace", "stunnel", "su",
    "sudo", "sudoedit", "supervise", "supervisord", "svn", "systemctl", "systemd-cat",
    "systemd-inhibit", "systemd-nspawn", "systemd-run", "task", "taskset", "tclsh", "tcpdump",
    "tcsh", "telnet", "time", "timeout", "tini", "tmux", "tox", "toybox", "trap", "tshark", "tsp",
    "uclampset", "udevadm", "unbuffer", "unshare", "uv", "uvx", "valgrind", "vi", "view", "vigr",
    "vim", "vimdiff", "vipe", "vipw", "virsh", "w3m", "watch", "watchexec", "wine", "wish",
    "with-contenv", "x86_64", "xargs", "xdg-open", "xterm", "xvfb-run", "xzless", "xzmore", "yarn",
    "yash", "yum", "zless", "zmore", "zsh", "zstdless", "zypper",
];

/// How the names begin of what the kernel starts programs with, and of the parts of git, which are
/// judged as its subcommands only.
pub(super) const BEGINNINGS: [&str; 5] = ["git-", "ld-linux", "ld-musl", "ld.so", "ld64.so"];

/// How the names of machines begin that programs are made for.
pub(super) const MACHINES: [&str; 20] = [
    "aarch64",
    "alpha",
    "arc",
    "arm",
    "hppa",
    "i386",
    "i486",
    "i586",
    "i686",
    "ia64",
    "loongarch",
    "m68k",
    "mips",
    "powerpc",
    "ppc",
    "riscv",
    "s390",
    "sh4",
    "sparc",
    "x86_64",
];

/// What rustc is told about the programs that it runs, and what these load.
pub(super) const LINKING: [&str; 10] = [
    "ar",
    "dlltool",
    "link-arg",
    "link-args",
    "link-self-contained",
    "linker",
    "linker-flavor",
    "linker-plugin-lto",
    "llvm-args",
    "passes",
];

/// What is behind the names of some programs to tell them apart.
pub(super) const KINDS: [&str; 9] =
    [".basic", ".exe", ".gtk3", ".nox", ".openbsd", ".tiny", ".traditional", "-static", "-nox"];

/// How a program runs others though that is not what it is for.
pub(super) struct Launching {
    pub(super) programs: &'static [&'static str],
    /// Long options; what they can be cut to is meant, too,
    pub(super) long: &'static [&'static str],
    /// but for these, which are others.
    pub(super) others: &'static [&'static str],
    /// Short options, wherever they stand behind a single dash.
    pub(super) short: &'static str,
    /// Whole words.
    pub(super) words: &'static [&'static str],
    /// How words begin.
    pub(super) beginnings: &'static [&'static str],
    /// How words end.
    pub(super) endings: &'static [&'static str],
    /// Whether they are meant in upper case, too.
    pub(super) any_case: bool,
}

pub(super) const NOTHING: Launching = Launching {
    programs: &[],
    long: &[],
    others: &[],
    short: "",
    words: &[],
    beginnings: &[],
    endings: &[],
    any_case: false,
};

pub(super) const LAUNCHING: &[Launching] = &[
    Launching {
        programs: &["find", "gfind"],
        words: &["-exec", "-execdir", "-ok", "-okdir"],
        ..NOTHING
    },
    Launching {
        programs: &["fd", "fdfind"],
        long: &["--exec", "--exec-batch"],
        short: "xX",
        ..NOTHING
    },
    Launching {
        programs: &["tar", "gtar", "bsdtar"],
        long: &[
            "--checkpoint-action",
            "--files-from",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
        others: &["--checkpoint", "--file"],
        short: "FIT",
        ..NOTHING
    },
    Launching {
        programs: &["hg"],
        long: &["--config", "--remotecmd", "--ssh", "--tool"],
        short: "e",
        words: &["serve"],
        ..NOTHING
    },
    Launching {
        programs: &["rsync"],
        long: &["--rsh", "--rsync-path", "--daemon", "--early-input"],
        short: "eM",
        ..NOTHING
    },
    Launching { programs: &["sort", "gsort"], long: &["--compress-program"], ..NOTHING },
    Launching { programs: &["split", "gsplit"], long: &["--filter"], ..NOTHING },
    Launching { programs: &["cpio"], long: &["--rsh-command"], ..NOTHING },
    Launching { programs: &["install", "ginstall"], long: &["--strip-program"], ..NOTHING },
    Launching { programs: &["diff3", "sdiff"], long: &["--diff-program"], short: "o", ..NOTHING },
    Launching { programs: &["patch"], long: &["--ed"], short: "e", ..NOTHING },
    Launching { programs: &["zip"], long: &["--unzip-command", "--test"], short: "T", ..NOTHING },
    Launching {
        programs: &["wget"],
        long: &["--execute", "--use-askpass", "--config"],
        short: "e",
        ..NOTHING
    },
    Launching {
        programs: &["openssl"],
        long: &["--config", "--engine", "--engine_impl", "--provider", "--provider-path"],
        words: &["engine", "-config", "-engine", "-engine_impl", "-provider-path", "-provider"],
        ..NOTHING
    },
    Launching {
        programs: &["pandoc"],
        long: &["--defaults", "--filter", "--lua-filter", "--pdf-engine", "--pdf-engine-opt"],
        short: "FLd",
        endings: &[".lua"],
        ..NOTHING
    },
    Launching {
        programs: &[
            "etex", "latex", "latexmk", "lualatex", "luatex", "pdflatex", "pdftex", "tex",
            "xelatex", "xetex",
        ],
        long: &["--enable-write18", "--shell-escape", "--shell-restricted", "--luaonly"],
        words: &["-e", "-r"],
        beginnings: &["-en", "-sh", "-pdflatex", "-latex", "-usepretex", "\\"],
        ..NOTHING
    },
    Launching {
        programs: &["soffice", "libreoffice", "loffice", "localc", "lowriter"],
        beginnings: &["macro:", "vnd.sun.star.script:", "-accept", "--accept", "-env:"],
        ..NOTHING
    },
    Launching {
        programs: &["gs", "ghostscript"],
        beginnings: &[
            "-dnosafer",
            "-ddelaysafer",
            "-dsafer=",
            "-dsafer#",
            "%pipe%",
            "-soutputfile=%pipe%",
            "-soutputfile#%pipe%",
            "-o%pipe%",
            "@",
        ],
        any_case: true,
        ..NOTHING
    },
    Launching {
        programs: &["java", "javac"],
        beginnings: &[
            "-XX:OnError",
            "-XX:OnOutOfMemoryError",
            "-XX:Flags",
            "-agent",
            "-javaagent",
            "-J",
            "@",
        ],
        ..NOTHING
    },
    Launching {
        programs: &["ip", "tc"],
        long: &["--batch"],
        // Both words and options may be cut.
        words: &["-b", "-ba", "-bat", "-batc", "-batch", "e", "ex", "exe", "exec", "vrf"],
        ..NOTHING
    },
    Launching {
        programs: &["gcc", "g++", "cc", "c++", "clang", "clang++", "cpp", "gfortran"],
        words: &["-Xclang", "-Xlinker"],
        beginnings: &[
            "--config",
            "--gcc-",
            "--ld-path",
            "--prefix",
            "-B",
            "-fpass-plugin",
            "-fplugin",
            "-fuse-ld",
            "-iplugindir",
            "-ld-path",
            "-specs",
            "--specs",
            "-Wl,-plugin",
            "-Wl,--plugin",
            "-wrapper",
            "@",
        ],
        ..NOTHING
    },
    Launching { programs: &["rustc"], beginnings: &["-Z", "@"], ..NOTHING },
    Launching { programs: &["rg", "ripgrep"], long: &["--pre", "--hostname-bin"], ..NOTHING },
    Launching { programs: &["bat", "batcat"], long: &["--pager"], ..NOTHING },
    Launching { programs: &["fzf"], long: &["--bind", "--preview", "--listen"], ..NOTHING },
    Launching {
        programs: &["exiftool"],
        words: &["-api", "-config", "-if", "-p", "-printformat"],
        beginnings: &[
            "-@", "-if0", "-if1", "-if2", "-if3", "-if4", "-if5", "-if6", "-if7", "-if8", "-if9",
        ],
        any_case: true,
        ..NOTHING
    },
    Launching {
        programs: &["gpg"],
        long: &[
            "--agent-program",
            "--photo-viewer",
            "--dirmngr-program",
            "--pinentry-program",
            "--options",
        ],
        ..NOTHING
    },
];

/// Languages, and the options behind which code follows.
pub(super) const LANGUAGES: &[(&[&str], &str, &[&str])] = &[
    (&["python", "pypy", "ipython"], "c", &[]),
    (&["perl", "ruby", "jruby"], "eE", &[]),
    (&["node", "nodejs", "bun"], "epr", &["--eval", "--print", "--require", "--import"]),
    (&["deno"], "", &["eval", "repl"]),
    (&["php"], "rBRE", &["--run", "--process-begin", "--process-code", "--process-end"]),
    (&["lua", "luajit", "texlua"], "el", &[]),
    (&["r", "rscript", "julia"], "eE", &["--eval", "--print"]),
    (&["guile", "ocaml", "racket", "elixir", "scala", "groovy", "clojure"], "ec", &[]),
    (&["erl", "swipl", "sbcl", "clisp"], "gx", &["-eval", "--eval", "--load"]),
    (&["octave"], "", &["--eval"]),
    (&["ghc", "runghc", "runhaskell"], "e", &[]),
    (&["osascript"], "e", &[]),
];
