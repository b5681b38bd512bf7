//! Which traces are sent.

use opentelemetry_sdk::trace::Sampler;

use super::settings::{InvalidTelemetrySettings, invalid};

/// Which traces are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sampling {
    /// All of them, or none.
    Always { is_on: bool, heeds_parent: bool },
    /// Some of them.
    Ratio { ratio: f64, heeds_parent: bool },
}

impl Sampling {
    pub(super) fn sampler(self) -> Sampler {
        let (root, heeds_parent) = match self {
            Self::Always { is_on: true, heeds_parent } => (Sampler::AlwaysOn, heeds_parent),
            Self::Always { is_on: false, heeds_parent } => (Sampler::AlwaysOff, heeds_parent),
            Self::Ratio { ratio, heeds_parent } => {
                (Sampler::TraceIdRatioBased(ratio), heeds_parent)
            }
        };
        match heeds_parent {
            true => Sampler::ParentBased(Box::new(root)),
            false => root,
        }
    }
}

/// What `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` say, if they say something.
pub(super) fn named(
    name: Option<&str>,
    argument: Option<&str>,
) -> Result<Option<Sampling>, InvalidTelemetrySettings> {
    let Some(name) = name else { return Ok(None) };
    let ratio = || {
        let ratio = argument.map_or(Ok(1.0), str::parse::<f64>).ok();
        ratio
            .filter(|ratio| (0.0..=1.0).contains(ratio))
            .ok_or_else(|| invalid("OTEL_TRACES_SAMPLER_ARG", "it must be a number from 0 to 1"))
    };
    let heeds_parent = name.starts_with("parentbased_");
    Ok(Some(match name.strip_prefix("parentbased_").unwrap_or(name) {
        "always_on" => Sampling::Always { is_on: true, heeds_parent },
        "always_off" => Sampling::Always { is_on: false, heeds_parent },
        "traceidratio" => Sampling::Ratio { ratio: ratio()?, heeds_parent },
        _ => {
            return Err(invalid(
                "OTEL_TRACES_SAMPLER",
                "it must be always_on, always_off or traceidratio, or one of them behind \
                 parentbased_",
            ));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samplers_have_the_names_of_the_specification() {
        let on = |heeds_parent| Sampling::Always { is_on: true, heeds_parent };
        let half = |heeds_parent| Sampling::Ratio { ratio: 0.5, heeds_parent };
        for (name, argument, expected) in [
            ("always_on", None, Some(on(false))),
            ("parentbased_always_on", None, Some(on(true))),
            ("traceidratio", Some("0.5"), Some(half(false))),
            ("parentbased_traceidratio", Some("0.5"), Some(half(true))),
            ("traceidratio", Some("1.5"), None),
            ("traceidratio", Some("half"), None),
            ("jaeger_remote", None, None),
        ] {
            assert_eq!(named(Some(name), argument).ok().flatten(), expected, "{name} {argument:?}");
        }
        assert_eq!(named(None, Some("0.5")).unwrap(), None);
    }
}
