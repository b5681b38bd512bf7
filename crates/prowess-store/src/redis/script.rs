//! Scripts: what must be done as a whole is one of them.
//!
//! Their first line (`#!lua`) makes the server refuse one that would touch keys with different tags
//! in a cluster, and one that writes while there is no memory, before it begins.

use std::sync::LazyLock;

use redis::{Cmd, Script, ToRedisArgs, cmd};

macro_rules! scripts {
    ($($name:ident $file:literal)+) => {
        $(pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(include_str!($file)));)+
    };
}

scripts! {
    ANNOUNCE "announce.lua"
    CHANGES "changes.lua"
    COMMIT "commit.lua"
    COUNT "count.lua"
    DELETE "delete.lua"
    DROP "drop.lua"
    LEASE "lease.lua"
    LOOK "look.lua"
    PUT "put.lua"
    RELEASE "release.lua"
    RENEW "renew.lua"
    SETTLE "settle.lua"
    WRITE "write.lua"
}

/// A script with what it is given. All its keys begin with one.
pub(super) struct Call {
    pub(super) script: &'static Script,
    pub(super) command: Cmd,
}

impl Call {
    pub(super) fn new(script: &'static Script, key: &str) -> Self {
        let mut command = cmd("EVALSHA");
        command.arg(script.get_hash()).arg(1).arg(key);
        Self { script, command }
    }

    pub(super) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.command.arg(arg);
        self
    }

    /// One more word, or an empty one.
    pub(super) fn maybe(self, arg: Option<impl ToRedisArgs>) -> Self {
        match arg {
            Some(arg) => self.arg(arg),
            None => self.arg(""),
        }
    }
}
