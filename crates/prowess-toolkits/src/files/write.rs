//! `write_file`

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::{Expected, WorkspacePath, Wrote};
use serde_json::json;

use super::arguments::WriteArguments;
use super::{FileError, Files};
use crate::invalid::InvalidArguments;

impl Files {
    /// Makes a file, or replaces one.
    pub(crate) async fn write(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let arguments = WriteArguments::parse(&invocation.call.arguments).map_err(invalid)?;
        let spot = self.spot(invocation, &arguments.path).await?;
        let (place, bytes) = (spot.place()?, arguments.content.as_bytes());
        self.check_size(place, bytes).map_err(|error| spot.failure(&error))?;
        let wrote = spot.backend.write(place, bytes, Expected::Anything).await;
        let wrote = wrote.map_err(|error| spot.failure(&error))?;
        let (path, size) = (self.ground.shown(place), bytes.len());
        let (did, was_there) = match wrote {
            Wrote::Created => ("Created", false),
            Wrote::Replaced => ("Replaced", true),
        };
        let mut outcome = ToolOutcome::text(format!("{did} {path} ({size} bytes)"));
        outcome.data = json!({
            "ref": self.ground.reference(place.as_str()),
            "size_bytes": size,
            "replaced": was_there,
        });
        Ok(outcome)
    }

    /// Whether so much may be written.
    pub(super) fn check_size(&self, place: &WorkspacePath, bytes: &[u8]) -> Result<(), FileError> {
        let (bytes, most) = (bytes.len() as u64, self.settings.max_write_bytes);
        match bytes > most {
            true => {
                let (path, limit) = (self.ground.shown(place), "max_write_bytes");
                Err(FileError::TooLarge { path, bytes, limit, most })
            }
            false => Ok(()),
        }
    }
}
