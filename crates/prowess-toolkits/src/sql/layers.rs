//! The three layers that keep statements from writing, which tests can take one by one.

/// Whether a layer is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// It is.
    On,
    /// It is not: only to show in a test what the others do.
    Off,
}

/// Which layers keep a statement from writing. All do, and no configuration can change that; tests
/// take them one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layers {
    /// What the statement says, [`SqlGuard`](crate::SqlGuard).
    pub guard: Layer,
    /// A session that cannot write.
    pub session: Layer,
    /// What the role may do, as the settings of the connection say.
    pub role: Layer,
}

impl Layers {
    /// All of them.
    pub const ALL: Self = Self { guard: Layer::On, session: Layer::On, role: Layer::On };

    /// Those that a test wants.
    #[doc(hidden)]
    pub const fn for_tests(guard: Layer, session: Layer, role: Layer) -> Self {
        Self { guard, session, role }
    }
}

impl Default for Layers {
    fn default() -> Self {
        Self::ALL
    }
}
