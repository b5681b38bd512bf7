//! Variables by which a call could change what a listed command comes to.

/// Where programs are found, what they load before anything else, and what they run.
const REFUSED: [&str; 70] = [
    "ANT_OPTS",
    "AR",
    "AS",
    "AWKLIBPATH",
    "AWKPATH",
    "BROWSER",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "CPP",
    "CURL_HOME",
    "CXX",
    "DISPLAY",
    "EDITOR",
    "ENV",
    "EXINIT",
    "FCEDIT",
    "FPATH",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLOBIGNORE",
    "GOFLAGS",
    "GOPATH",
    "GOROOT",
    "GRADLE_OPTS",
    "HISTFILE",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "INSTALL",
    "KSHENV",
    "LOCALDOMAIN",
    "LOCPATH",
    "LOGNAME",
    "MAILCAPS",
    "MAVEN_OPTS",
    "MYSQL_HOME",
    "NETRC",
    "NLSPATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PATHEXT",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "PSQLRC",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "SHELL",
    "SHELLOPTS",
    "SUDO_ASKPASS",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TCLLIBPATH",
    "TCLSH",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TMPDIR",
    "TMPPREFIX",
    "TZDIR",
    "USER",
    "VIMINIT",
    "VIRTUAL_ENV",
    "VISUAL",
    "ZDOTDIR",
];

/// The same, by how they begin.
const REFUSED_BEGINNINGS: [&str; 51] = [
    "BASH", "BUNDLE", "CARGO", "CMAKE", "CONDA", "CORECLR_", "COR_", "DBUS_", "DENO_", "DOCKER",
    "DOTNET_", "DYLD_", "EMACS", "GCC_", "GDB", "GEM_", "GIO_", "GIT_", "GLIBC_", "GREP_", "GST_",
    "GTK_", "JAVA_", "JDK_", "JULIA_", "LD_", "LESS", "LUA_", "MAGICK_", "MAKE", "MALLOC_", "MAN",
    "NODE_", "NPM_", "PERL", "PHP", "PIP_", "PYTHON", "QT_", "RSYNC_", "RUBY", "RUST", "R_",
    "SSH_", "SVN_", "TAR_", "UV_", "VIM", "WGET", "XDG_", "_JAVA_",
];

/// Whether a variable changes how programs are found, or what they load or run.
pub(super) fn changes_what_runs(name: &str) -> bool {
    // Some programs look for theirs in lower case.
    let upper = name.to_ascii_uppercase();
    !is_posix(name)
        || REFUSED.contains(&upper.as_str())
        || REFUSED_BEGINNINGS.iter().any(|start| upper.starts_with(start))
}

/// Whether this is a name that POSIX has for variables.
pub(crate) fn is_posix(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty()
        && name.chars().all(is_plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}
