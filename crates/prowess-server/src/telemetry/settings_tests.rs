use super::*;

fn read(text: &str) -> Result<TelemetrySettings> {
    TelemetrySettings::from_table(toml::from_str(text).unwrap())
}

fn with(variables: &[(&str, &str)]) -> Result<TelemetrySettings> {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    TelemetrySettings::default().with_environment(|name| {
        variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    })
}

#[test]
fn every_key_of_the_documentation_is_known_and_has_its_default() {
    assert_eq!(read("").unwrap(), TelemetrySettings::default());
    let section: Vec<&str> = include_str!("settings.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("/// "))
        .skip_while(|line| *line != "```toml")
        .skip(1)
        .take_while(|line| *line != "```")
        .collect();
    let mut file: toml::Table = toml::from_str(&section.join("\n")).unwrap();
    let Some(toml::Value::Table(table)) = file.remove("telemetry") else { panic!("{file}") };
    let own = toml::Table::try_from(TelemetrySettings::default()).unwrap();
    assert_eq!(table, own, "the documentation and the settings differ");
    assert!(read("otlp_endpoint = \"http://a\"\nservice_name = \"b\"").is_ok());
}

#[test]
fn wrong_settings_are_named() {
    for (text, expected) in [
        ("otlp_endpont = \"\"", "unknown field `otlp_endpont`"),
        ("otlp_endpoint = \"collector:4318\"", "otlp_endpoint: it must be a URL such as"),
        ("otlp_endpoint = \"ftp://collector\"", "otlp_endpoint: it must be a URL such as"),
        ("otlp_endpoint = \"http://a:secret@b\"", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("sample_ratio = 1.01", "sample_ratio: it must be from 0 to 1"),
        ("sample_ratio = -0.01", "sample_ratio: it must be from 0 to 1"),
        ("queue_spans = 0", "queue_spans: it must be at least 1"),
        ("queue_spans = 1048577", "queue_spans: it is at most 1048576"),
        ("queue_spans = 10", "batch_spans: it is at most queue_spans"),
        ("shutdown_ms = 0", "shutdown_ms: it must be at least 1"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.to_string().starts_with("[telemetry]: "), "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
        assert!(!error.to_string().contains("secret"), "{text}: {error}");
        assert_eq!(error.code(), "invalid_telemetry_settings");
    }
    for text in ["sample_ratio = 0.0", "sample_ratio = 1.0", "queue_spans = 1048576"] {
        assert!(read(text).is_ok(), "{text}");
    }
    assert!(read("queue_spans = 1\nbatch_spans = 1").is_ok());
}

#[test]
fn wrong_variables_are_named_without_what_they_hold() {
    for (key, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "hunter2"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "hunter2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hunter2"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1s"),
    ] {
        let error = with(&[(key, value)]).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn variables_say_where_to_send_to() {
    let ends = |variables: &[(&str, &str)]| {
        let settings = with(variables).unwrap();
        [settings.traces_endpoint().unwrap(), settings.metrics_endpoint().unwrap()]
    };
    let some = |text: &str| Some(text.to_owned());
    let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/");
    assert_eq!(ends(&[]), [None, None]);
    assert_eq!(ends(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), [None, None]);
    let both = [some("http://a:4318/v1/traces"), some("http://a:4318/v1/metrics")];
    assert_eq!(ends(&[all]), both);
    assert_eq!(ends(&[all, ("OTEL_SDK_DISABLED", "true")]), [None, None]);
    assert_eq!(ends(&[all, ("OTEL_SDK_DISABLED", "no")]), both);
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/x");
    assert_eq!(ends(&[all, own]), [some("http://b/x"), both[1].clone()]);
    assert_eq!(ends(&[own]), [some("http://b/x"), None]);
    assert_eq!(ends(&[all, ("OTEL_TRACES_EXPORTER", "none")]), [None, both[1].clone()]);
}

#[test]
fn variables_count_more_than_the_file() {
    let settings = with(&[
        ("OTEL_SERVICE_NAME", "skills"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "7"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
    ]);
    let settings = settings.unwrap();
    assert_eq!((settings.queue_spans, settings.batch_spans), (7, 3));
    assert_eq!(settings.metric_interval_ms, 100);
    assert_eq!(settings.service_name.as_deref(), Some("skills"));
    let named = |variables| with(variables).unwrap().service_name;
    assert_eq!(named(&[]).as_deref(), Some("prowess"));
    assert_eq!(named(&[("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=x")]), None);
}

#[test]
fn a_protocol_is_judged_where_something_is_sent_by_it() {
    const ALL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
    const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
    const METRICS: &str = "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL";
    const TO: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318");
    const OURS: &str = "http/protobuf";
    type Variables = &'static [(&'static str, &'static str)];
    let table: [(Variables, Option<&str>); 9] = [
        (&[(ALL, "grpc"), (TRACES, "grpc"), (METRICS, "grpc")], None),
        (&[TO, (ALL, "grpc"), ("OTEL_SDK_DISABLED", "true")], None),
        (&[TO, (ALL, OURS)], None),
        (&[TO, (ALL, "grpc")], Some(ALL)),
        (&[TO, (ALL, "grpc"), (TRACES, OURS)], Some(ALL)),
        (&[TO, (ALL, "grpc"), (TRACES, OURS), (METRICS, OURS)], None),
        (&[TO, (ALL, OURS), (METRICS, "grpc")], Some(METRICS)),
        (&[TO, (METRICS, "grpc"), ("OTEL_METRICS_EXPORTER", "none")], None),
        (&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b"), (METRICS, "grpc")], None),
    ];
    for (variables, wrong) in table {
        let error = with(variables).err().map(|error| error.to_string());
        match wrong {
            Some(key) => assert!(error.unwrap().contains(key), "{variables:?}"),
            None => assert_eq!(error, None, "{variables:?}"),
        }
    }
}
