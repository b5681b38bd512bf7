//! The skills that come with the program, in a registry.

use std::sync::Arc;

use anyhow::Context;
use prowess_catalog::{ContentFile, ResourcePath, SkillContents};
use prowess_store::{
    Actor, Expected, NewVersion, Origin, SkillReading, VersionError, VersionStore,
};
use prowess_toolkits::BuiltInSkill;

/// So often another instance may come first that starts at the same time.
const ATTEMPTS: usize = 5;

/// Registers what this program ships. What somebody has changed stays in use; what is shipped anew is
/// a version that waits. A skill of the same name that somebody else made is left alone, and what was
/// there before stays as it is: an old program that starts again while others are new brings
/// nothing back.
pub(crate) async fn register(store: &dyn VersionStore) -> anyhow::Result<()> {
    register_all(store, BuiltInSkill::ALL).await
}

async fn register_all(store: &dyn VersionStore, skills: &[BuiltInSkill]) -> anyhow::Result<()> {
    for skill in skills {
        let new =
            version_of(skill).with_context(|| format!("the built-in skill {}", skill.name))?;
        let mut attempts = 0;
        loop {
            match store.version_with(&new.skill, new.contents.tree_digest).await {
                Ok(Some(_)) => break,
                Ok(None) | Err(VersionError::NoSkill(_)) => {}
                Err(error) => return Err(error.into()),
            }
            attempts += 1;
            match store.append(new.clone()).await {
                Ok(_) => break,
                Err(VersionError::Exists(id)) => {
                    anstream::eprintln!(
                        "Warning: the built-in skill '{id}' is not registered: somebody has made \
                         one of this name"
                    );
                    break;
                }
                Err(VersionError::Stale { .. }) if attempts < ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Registers what this program ships and nobody has registered yet, so that its names are not given
/// to others. Whatever has such a name is left alone: another program may have shipped it anew.
pub(crate) async fn register_missing(store: &dyn VersionStore) -> anyhow::Result<()> {
    for skill in BuiltInSkill::ALL {
        let new =
            version_of(skill).with_context(|| format!("the built-in skill {}", skill.name))?;
        match store.head(&new.skill).await {
            Err(VersionError::NoSkill(_)) => {}
            // What is broken of it is told to whoever asks for it.
            Ok(_) | Err(VersionError::Corrupt { .. }) => continue,
            Err(error) => return Err(error.into()),
        }
        match store.append(new.expecting(Expected::Absent)).await {
            Ok(_) | Err(VersionError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn version_of(skill: &BuiltInSkill) -> anyhow::Result<NewVersion> {
    let file = |(path, bytes): &(&str, &[u8])| {
        anyhow::Ok(ContentFile::new(ResourcePath::parse(path)?, false, *bytes))
    };
    let files = skill.files.iter().map(file).collect::<Result<Vec<_>, _>>()?;
    let contents = Arc::new(SkillContents::of(files));
    let SkillReading { id, about, .. } = SkillReading::of(&contents)?;
    let mut new = NewVersion::new(id, contents, about, Actor::built_in())
        .because(Some(format!("Shipped with prowess {}", env!("CARGO_PKG_VERSION"))));
    new.origin = Origin::BuiltIn;
    Ok(new)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use prowess_store::SqliteStore;

    use super::*;

    fn shipped(text: &'static str) -> [BuiltInSkill; 1] {
        let mut skill = BuiltInSkill::ALL[0];
        skill.files = Box::leak(Box::new([("SKILL.md", text.as_bytes())]));
        [skill]
    }

    #[tokio::test]
    async fn an_old_program_that_starts_again_brings_nothing_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("prowess.db")).unwrap().versions();
        let old = shipped("---\nname: demo\ndescription: Shows it.\n---\nOld.\n");
        let new = shipped("---\nname: demo\ndescription: Shows it.\n---\nNew.\n");
        let id = "demo".parse().unwrap();
        for (program, active, count) in [(&old, 0, 1), (&new, 1, 2), (&old, 1, 2), (&new, 1, 2)] {
            register_all(&store, program).await.unwrap();
            let skill = store.skill(&id).await.unwrap();
            assert_eq!((skill.active.number, skill.version_count), (active, count));
        }
    }
}
