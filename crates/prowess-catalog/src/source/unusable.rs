//! A source that cannot be used at all.

use std::sync::Arc;

use prowess_format::{Code, Diagnostic, Level};

use super::{Source, SourceFuture, SourceInfo, Trust};
use crate::beneath::ResourcePath;
use crate::error::ReadError;
use crate::found::{FoundSkill, SourceListing};
use crate::resource::{ResourceListing, ResourceScope};

/// Holds nothing but the reason why it holds nothing: a wrong source does not hurt the others.
#[derive(Debug)]
pub struct UnusableSource {
    info: SourceInfo,
    listing: Arc<SourceListing>,
}

impl UnusableSource {
    /// A source at this location that cannot be used for this reason; `help` says what to do.
    pub fn new(location: &str, why: &str, help: &str) -> Self {
        let message = format!("The source cannot be used: {why}");
        let finding = Diagnostic::new(Code::SourceUnavailable, Level::Error, message);
        let diagnostics = vec![finding.with_path(location).with_help(help)];
        let info = SourceInfo::new("unusable", location).with_trust(Trust::Untrusted);
        Self { info, listing: Arc::new(SourceListing { skills: Vec::new(), diagnostics }) }
    }
}

impl Source for UnusableSource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        Box::pin(std::future::ready(Arc::clone(&self.listing)))
    }

    fn read<'a>(&'a self, _: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(std::future::ready(Err(ReadError::Replaced)))
    }

    fn resources<'a>(
        &'a self,
        _: &'a FoundSkill,
        _: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        Box::pin(std::future::ready(Err(ReadError::Replaced)))
    }

    fn read_resource<'a>(
        &'a self,
        _: &'a FoundSkill,
        _: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(std::future::ready(Err(ReadError::Replaced)))
    }
}
