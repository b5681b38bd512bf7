//! The catalog that the flags, variables and files of this call describe.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use prowess_catalog::{
    BUILT_IN, Blocking, Catalog, CatalogSkill, Config, DirectorySource, Environment, Location,
    LookupError, Reach, RemoteCache, RemoteSource, ResourceListing, ResourceScope, Root,
    RootOrigin, ScanLimits, Snapshot, Source, Trust, UnusableSource, default_roots, label_of,
    variable_roots,
};
use prowess_format::Diagnostic;
use prowess_server::Imports;
use prowess_toolkits::BuiltInSkill;
use serde_json::json;

use crate::cli::CatalogArgs;
use crate::progress::{self, Latest};
use crate::report;
use crate::terminal::safe_line;

/// Everything that decides where skills are looked for.
pub(crate) struct Finder {
    pub(crate) config: Config,
    /// Lowest precedence first.
    pub(crate) roots: Vec<Root>,
    /// Where Prowess keeps what is its own.
    pub(crate) home: Option<PathBuf>,
    /// The working directory.
    pub(crate) folder: PathBuf,
    /// How far fetching has come.
    pub(crate) latest: Latest,
    cache: Option<PathBuf>,
    reach: Reach,
    runtime: tokio::runtime::Runtime,
}

impl Finder {
    /// Whether the configuration is the one in Prowess' own home.
    pub(crate) fn is_own_config(&self) -> bool {
        let own = self.home.as_ref().map(|home| home.join("prowess.toml"));
        self.config.path.is_some() && self.config.path == own
    }

    pub(crate) fn new(arguments: &CatalogArgs) -> anyhow::Result<Self> {
        let environment = environment()?;
        let config = Config::find(&environment)?;
        let mut roots = Vec::new();
        if !arguments.no_default_roots && config.default_roots.unwrap_or(true) {
            roots.extend(default_roots(&environment));
        }
        roots.extend(config.sources.iter().cloned());
        roots.extend(variable_roots(&environment));
        roots.extend(arguments.sources.iter().map(|path| Root::new(path, RootOrigin::Flag)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self {
            config,
            roots,
            home: environment.prowess_home(),
            cache: environment.cache_folder(),
            folder: environment.working_directory,
            latest: Latest::default(),
            reach: reach()?,
            runtime,
        })
    }

    /// The same, looking nowhere but there.
    pub(crate) fn with_roots(self, roots: Vec<Root>) -> Self {
        Self { roots, ..self }
    }

    /// Where what is fetched is kept.
    pub(crate) fn cache(&self) -> anyhow::Result<RemoteCache> {
        let folder = self.cache.clone();
        folder.map(RemoteCache::new).context("there is no home; set PROWESS_CACHE_DIR")
    }

    /// How a server fetches skills that are imported by URL.
    pub(crate) fn imports(&self) -> anyhow::Result<Imports> {
        let imports = Imports::new(self.cache()?).with_limits(self.config.remote);
        Ok(imports.with_reach(self.reach.clone()))
    }

    /// The source at a root, if it is a URL or a file; a folder is not.
    pub(crate) fn remote(&self, root: &Root) -> anyhow::Result<Option<RemoteSource>> {
        if root.url() == Some(BUILT_IN) {
            return Ok(None);
        }
        let path = match root.url() {
            Some(_) => root.path.clone(),
            None => self.folder.join(&root.path),
        };
        let location = Location::parse(&path.to_string_lossy())?;
        let is_folder = |path: &Path| !path.is_file() && location.pin().is_none();
        if location.file().is_some_and(is_folder) {
            return Ok(None);
        }
        let trust = root.trust.unwrap_or(location.trust());
        let source = RemoteSource::new(location, self.cache()?)
            .with_trust(trust)
            .with_limits(self.config.remote)
            .with_scan_limits(self.config.limits)
            .with_origins(self.config.index_origins.clone())
            .with_reach(self.reach.clone())
            .with_progress(self.latest.sink())
            .with_blocking(Blocking::Here);
        Ok(Some(source))
    }

    fn source(&self, root: &Root) -> Arc<dyn Source> {
        if root.url() == Some(BUILT_IN) {
            return Arc::new(BuiltInSkill::source(BuiltInSkill::ALL));
        }
        match self.remote(root) {
            Ok(Some(source)) => return Arc::new(source),
            Ok(None) => {}
            Err(error) => {
                let (shown, help) = (root.path.display().to_string(), "correct or remove it");
                return Arc::new(UnusableSource::new(&shown, &format!("{error:#}"), help));
            }
        }
        // `--source skills` is called after the folder that it is in.
        let absolute = root.path.canonicalize().or_else(|_| std::path::absolute(&root.path));
        let label = label_of(absolute.as_ref().unwrap_or(&root.path));
        let source = DirectorySource::new(&root.path)
            .with_label(label)
            .with_trust(root.trust.unwrap_or(Trust::Trusted))
            .with_limits(self.config.limits)
            .with_blocking(Blocking::Here);
        Arc::new(source)
    }

    /// Looks for skills.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.refreshed().snapshot()
    }

    /// A catalog that has looked for skills.
    pub(crate) fn refreshed(&self) -> Catalog {
        let mut builder = Catalog::builder().precedence(self.config.precedence);
        for root in &self.roots {
            builder = builder.shared_source(self.source(root));
        }
        let catalog = builder.build();
        progress::while_fetching("Looking for skills", &self.latest, || {
            self.runtime.block_on(catalog.refresh())
        });
        catalog
    }

    /// The resources of a skill. If they cannot be read there are none, and `findings` says so.
    pub(crate) fn resources(
        &self,
        skill: &CatalogSkill,
        scope: ResourceScope,
        findings: &mut Vec<Diagnostic>,
    ) -> ResourceListing {
        self.wait(skill.resources(scope)).unwrap_or_else(|error| {
            findings.push(error.about_resources(&skill.path()));
            ResourceListing::default()
        })
    }

    /// Waits for something that the catalog does.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

/// Which addresses are connected to: private ones only if `PROWESS_PRIVATE_ADDRESSES` says so. No
/// `prowess.toml` can say it, since a project that was cloned may bring one.
fn reach() -> anyhow::Result<Reach> {
    match std::env::var("PROWESS_PRIVATE_ADDRESSES") {
        Ok(text) if !text.is_empty() => text.parse::<Reach>().context("PROWESS_PRIVATE_ADDRESSES"),
        _ => Ok(Reach::default()),
    }
}

/// Who put a root there, in a word.
pub(crate) fn origin(root: &Root) -> &'static str {
    match root.origin {
        RootOrigin::User => "user",
        RootOrigin::Project => "project",
        RootOrigin::Variable => "variable",
        RootOrigin::Configuration => "prowess.toml",
        _ => "flag",
    }
}

/// How much may be read, as the nearest `prowess.toml` says.
pub(crate) fn limits() -> anyhow::Result<ScanLimits> {
    Ok(Config::find(&environment()?)?.limits)
}

/// What surrounds this process.
pub(crate) fn environment() -> anyhow::Result<Environment> {
    Environment::of_process().context("there is no working directory")
}

/// The skill of this name. If there is none, says so.
pub(crate) fn skill_or_complaint<'a>(
    snapshot: &'a Snapshot,
    name: &str,
    form: Form,
) -> anyhow::Result<Option<&'a CatalogSkill>> {
    let error = match snapshot.get(name) {
        Ok(skill) => return Ok(Some(skill)),
        Err(error) => error,
    };
    let others = match &error {
        LookupError::Unknown { nearest: None, .. } => "; `prowess list` shows those that are there",
        _ => "",
    };
    let code = match &error {
        LookupError::Ambiguous { .. } => "ambiguous_name",
        _ => "unknown_skill",
    };
    complain(code, &format!("{error}{others}"), form)?;
    Ok(None)
}

/// For whom something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl Form {
    /// What the flag `--json` asks for.
    pub(crate) fn of_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Says what went wrong: to people on standard error, to programs as `{"error": …}` too.
pub(crate) fn complain(code: &str, message: &str, form: Form) -> anyhow::Result<()> {
    if form == Form::Json {
        print_error(code, message)?;
    }
    anstream::eprintln!("Error: {} [{code}]", safe_line(message));
    Ok(())
}

/// Prints `{"error": …}` for programs.
pub(crate) fn print_error(code: &str, message: &str) -> anyhow::Result<()> {
    report::print_json(&json!({"error": {"code": code, "message": message}}))
}
