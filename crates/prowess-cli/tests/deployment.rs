//! The files in `deploy/`: that they can be read, fit together, and name what there is.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use prowess_catalog::{Config, Environment};
use prowess_server::ServerSettings;
use prowess_toolkits::ArtifactSettings;
use serde_json::Value;
use support::Sandbox;
use support::chat::{command, project};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").canonicalize().unwrap()
}

fn text(name: &str) -> String {
    let path = deploy().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(name: &str) -> Value {
    serde_saphyr::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All YAML files, by their names below `deploy/`.
fn all() -> Vec<(String, Value)> {
    let mut names = Vec::new();
    for folder in ["", "kubernetes/"] {
        for entry in fs::read_dir(deploy().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".yaml") || name.ends_with(".yml") {
                names.push(format!("{folder}{name}"));
            }
        }
    }
    names.sort();
    names.into_iter().map(|name| (name.clone(), yaml(&name))).collect()
}

/// Every value in a file, with the way to it.
fn visit(value: &Value, way: &str, seen: &mut dyn FnMut(&str, &Value)) {
    seen(way, value);
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| visit(value, &format!("{way}/{key}"), seen));
        }
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(at, value)| visit(value, &format!("{way}/{at}"), seen));
        }
        _ => {}
    }
}

fn found(value: &Value, is_wanted: impl Fn(&str, &Value) -> bool) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    visit(value, "", &mut |way, value| {
        if is_wanted(way, value) {
            all.push((way.to_owned(), value.clone()));
        }
    });
    all
}

fn words(value: &Value) -> Vec<String> {
    let all = value.as_array().unwrap_or_else(|| panic!("{value}"));
    all.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// The settings that instances are started with: those of the compose file and of the cluster.
fn settings() -> [(&'static str, String); 2] {
    let config = yaml("kubernetes/configmap.yaml");
    let embedded = config["data"]["prowess.toml"].as_str().unwrap().to_owned();
    [("prowess.toml", text("prowess.toml")), ("kubernetes/configmap.yaml", embedded)]
}

fn server(text: &str) -> ServerSettings {
    let table: toml::Table = toml::from_str(text).unwrap();
    ServerSettings::from_table(table["server"].as_table().unwrap().clone()).unwrap()
}

#[test]
fn every_file_is_read_and_those_of_the_cluster_are_listed_once() {
    let all = all();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let listed = words(&yaml("kubernetes/kustomization.yaml")["resources"]);
    for (name, value) in &all {
        assert!(value.is_object(), "{name}");
        let Some(file) = name.strip_prefix("kubernetes/") else { continue };
        assert!(value["kind"].is_string() && value["apiVersion"].is_string(), "{name}");
        let is_listed = listed.iter().any(|it| it == file);
        // Secrets are made by hand.
        let is_other = matches!(file, "kustomization.yaml" | "secret.example.yaml");
        assert_eq!(is_listed, !is_other, "{name}");
    }
    for file in &listed {
        assert!(names.contains(&format!("kubernetes/{file}").as_str()), "{file} is not there");
    }
}

#[test]
fn every_key_of_the_settings_is_one_that_the_program_knows() {
    for (name, text) in settings() {
        let sandbox = Sandbox::new();
        let file = sandbox.write("prowess.toml", &text);
        let config = Config::read(&file, &Environment::default()).unwrap();
        let server = ServerSettings::from_table(config.server).unwrap();
        let artifacts = ArtifactSettings::from_table(config.artifacts).unwrap();
        assert!(server.host.is_unspecified(), "{name}: others must reach it");
        assert!(format!("{artifacts:?}").contains("prowess-artifacts"), "{name}: {artifacts:?}");
        let broken = text.replace("shutdown_seconds", "shutdown_second");
        let table: toml::Table = toml::from_str(&broken).unwrap();
        let table = table["server"].as_table().unwrap().clone();
        assert!(ServerSettings::from_table(table).is_err(), "the control");
    }
}

#[test]
fn the_program_serves_with_these_settings() {
    for (name, text) in settings() {
        let sandbox = project();
        sandbox.write("home/prowess.toml", &text);
        let mut command =
            command(&sandbox, &["serve", "--host", "127.0.0.1", "--port", "0", "--json"]);
        command.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
        command.current_dir(sandbox.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let told: Value = serde_json::from_str(&first).unwrap_or_else(|error| {
            let _ = child.kill();
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{name}: {error}: {first}{said}")
        });
        let address = told["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        // As a balancer, and as the health check of the image, ask.
        let answers = ["/health", "/ready"].map(|path| {
            let mut stream = TcpStream::connect(&address).unwrap();
            write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        let _ = child.kill();
        let _ = child.wait();
        for answer in answers {
            assert!(answer.lines().next().unwrap().contains(" 200 "), "{name}: {answer}");
        }
    }
}

#[test]
fn probes_name_routes_that_there_are() {
    let description = serde_json::to_value(prowess_server::openapi()).unwrap();
    let is_route = |path: &str| {
        let below = format!("/api/v1{path}");
        description["paths"].as_object().unwrap().keys().any(|it| *it == path || *it == below)
    };
    let pod = &yaml("kubernetes/deployment.yaml")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for (probe, path) in
        [("startupProbe", "/health"), ("livenessProbe", "/health"), ("readinessProbe", "/ready")]
    {
        let get = &container[probe]["httpGet"];
        assert_eq!(
            (get["path"].as_str(), get["port"].as_str()),
            (Some(path), Some("http")),
            "{probe}"
        );
        assert!(is_route(path), "{path}");
    }
    assert!(!is_route("/healthz"), "the control");
    let balancer = text("haproxy.cfg");
    let asked: Vec<&str> = balancer
        .lines()
        .filter_map(|line| line.split_once("http-check send meth GET uri "))
        .map(|(_, rest)| rest.split(' ').next().unwrap())
        .collect();
    assert_eq!(asked, ["/ready", "/ready"]);
    assert!(text("Containerfile").contains("GET /health HTTP/1.0"));
}

#[test]
fn ports_and_names_agree() {
    let deployment = yaml("kubernetes/deployment.yaml");
    let (service, budget) =
        (yaml("kubernetes/service.yaml"), yaml("kubernetes/poddisruptionbudget.yaml"));
    let policy = yaml("kubernetes/networkpolicy.yaml");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    for selector in [
        &deployment["spec"]["selector"]["matchLabels"],
        &service["spec"]["selector"],
        &budget["spec"]["selector"]["matchLabels"],
        &policy["spec"]["podSelector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let port = &container["ports"][0];
    assert_eq!(service["spec"]["ports"][0]["targetPort"], port["name"]);
    assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["port"], port["containerPort"]);
    for (name, text) in settings() {
        assert_eq!(port["containerPort"], server(&text).port, "{name}");
    }
    let file = text("Containerfile");
    assert!(file.contains(&format!("\nEXPOSE {}\n", port["containerPort"])));
    assert!(file.contains(&format!("/dev/tcp/127.0.0.1/{} ", port["containerPort"])));
    // The names that requests come with.
    let hosts = server(&settings()[1].1).allowed_hosts;
    let (name, namespace) = (&service["metadata"]["name"], &service["metadata"]["namespace"]);
    let [name, namespace] = [name, namespace].map(|it| it.as_str().unwrap());
    for host in [name.to_owned(), format!("{name}.{namespace}.svc.cluster.local")] {
        assert!(hosts.contains(&host), "{host}");
    }
    for (file, value) in all() {
        let other = &value["metadata"]["namespace"];
        if other.is_string() {
            assert_eq!(other, namespace, "{file}");
        }
    }
    // What the pod asks of others is there.
    let secret = yaml("kubernetes/secret.example.yaml");
    let config = yaml("kubernetes/configmap.yaml");
    for (way, reference) in found(&deployment, |way, _| way.ends_with("/secretKeyRef")) {
        assert_eq!(reference["name"], secret["metadata"]["name"], "{way}");
        assert!(secret["stringData"][reference["key"].as_str().unwrap()].is_string(), "{way}");
    }
    let volumes = pod["volumes"].as_array().unwrap();
    let volume = |name: &Value| volumes.iter().find(|volume| volume["name"] == *name).unwrap();
    for mount in container["volumeMounts"].as_array().unwrap() {
        volume(&mount["name"]);
    }
    assert_eq!(volume(&"config".into())["configMap"]["name"], config["metadata"]["name"]);
    assert_eq!(
        pod["serviceAccountName"],
        yaml("kubernetes/serviceaccount.yaml")["metadata"]["name"]
    );
    // There is time to finish what was begun.
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace >= server(&settings()[1].1).shutdown_seconds + 5);
}

#[test]
fn the_compose_file_has_two_instances_and_shows_nothing_but_the_balancer() {
    let compose = yaml("compose.yaml");
    let services = compose["services"].as_object().unwrap();
    assert_eq!(services["prowess"]["deploy"]["replicas"], 2);
    for (name, service) in services {
        let ports = service["ports"].as_array().cloned().unwrap_or_default();
        assert_eq!(!ports.is_empty(), name == "balancer", "{name}");
        for port in ports {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name}: {port}");
        }
        for config in service["configs"].as_array().into_iter().flatten() {
            let file = &compose["configs"][config["source"].as_str().unwrap()]["file"];
            assert!(deploy().join(file.as_str().unwrap()).is_file(), "{name}: {file}");
        }
    }
    let port = server(&text("prowess.toml")).port;
    let balancer = text("haproxy.cfg");
    let servers = balancer.lines().filter(|line| line.contains("server-template prowess "));
    for line in servers {
        assert!(line.contains(&format!(" prowess:{port} ")), "{line}");
    }
    assert!(balancer.contains("bind :8080\n"));
    let artifacts = text("prowess.toml");
    assert!(artifacts.contains("endpoint = \"http://s3:7070\""));
    assert!(words(&services["s3"]["command"]).contains(&":7070".to_owned()));
    let bucket = words(&services["s3-bucket"]["command"]);
    assert!(bucket.last().unwrap().ends_with("/prowess-artifacts"), "{bucket:?}");
    let url = services["prowess"]["environment"]["PROWESS_STORE_URL"].as_str().unwrap();
    assert!(url.starts_with("postgres://") && url.contains("@postgres:5432/prowess"), "{url}");
    let build = &services["prowess"]["build"];
    assert!(deploy().join(build["context"].as_str().unwrap()).join("Cargo.toml").is_file());
    let file = deploy().join(build["context"].as_str().unwrap());
    assert!(file.join(build["dockerfile"].as_str().unwrap()).is_file());
}

#[test]
fn images_are_named_exactly_and_built_with_the_rust_of_the_workspace() {
    let mut images: Vec<String> = text("Containerfile")
        .lines()
        .filter_map(|line| line.strip_prefix("FROM "))
        .map(|rest| rest.split(' ').next().unwrap().to_owned())
        .collect();
    for (_, value) in all() {
        let named = found(&value, |way, it| way.ends_with("/image") && it.is_string());
        images.extend(named.into_iter().map(|(_, it)| it.as_str().unwrap().to_owned()));
    }
    assert!(images.len() >= 8, "{images:?}");
    for image in &images {
        let name = image.rsplit('/').next().unwrap();
        let tag = name.split_once(':').map(|(_, tag)| tag).unwrap_or_default();
        assert!(!tag.is_empty() && tag != "latest", "{image}");
    }
    let rust = format!("docker.io/library/rust:{}-", env!("CARGO_PKG_RUST_VERSION"));
    assert!(images[0].starts_with(&rust), "{} is not {rust}…", images[0]);
    let own = format!("prowess:{}", env!("CARGO_PKG_VERSION"));
    let owns = images.iter().filter(|it| it.rsplit('/').next().unwrap().starts_with("prowess:"));
    assert!(owns.clone().count() >= 2 && owns.clone().all(|it| it.ends_with(&own)), "{images:?}");
}

/// The files of Rust below a folder.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|it| it == "rs") {
            all.push(path);
        }
    }
}

/// What stands beside `crates/` in the repository and is built into the program: the first part of
/// each path, with the file that names it.
fn included() -> Vec<(String, PathBuf)> {
    let root = deploy().join("..").canonicalize().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // What only the examples of the documentation need is never built.
        let built = text.split("\n\n").filter(|part| !part.contains("doctest"));
        let including = built.filter(|part| part.contains("include_"));
        for literal in including.flat_map(|part| part.split('"').skip(1).step_by(2)) {
            let up = literal.matches("../").count();
            let folder = file.ancestors().nth(up + 1);
            if up > 0 && folder == Some(&*root) {
                let rest = literal.trim_start_matches("../");
                all.push((rest.split('/').next().unwrap().to_owned(), file.clone()));
            }
        }
    }
    all
}

#[test]
fn whatever_is_built_into_the_program_is_copied_into_the_image() {
    let included = included();
    assert!(included.iter().any(|(top, _)| top == "skills"), "the control: {included:?}");
    let file = text("Containerfile");
    let (build, _) = file.split_once("RUN cargo build").unwrap();
    let copied: Vec<&str> = build
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .flat_map(|line| line.split(' ').rev().skip(1))
        .collect();
    let ignored = fs::read_to_string(deploy().join("../.dockerignore")).unwrap();
    let ignored: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).collect();
    for (top, file) in &included {
        assert!(copied.contains(&top.as_str()), "{} needs {top}/", file.display());
    }
    for top in copied {
        let is_left_out = |line: &&str| *line == top || line.starts_with(&format!("{top}/"));
        assert!(!ignored.iter().any(is_left_out), "{top} is left out");
    }
}

#[test]
fn nothing_has_more_rights_than_it_needs() {
    let user = "10001";
    assert!(text("Containerfile").contains(&format!("\nUSER {user}:{user}\n")));
    for (name, value) in all() {
        for forbidden in [
            "privileged",
            "hostNetwork",
            "hostPID",
            "hostIPC",
            "hostPath",
            "cap_add",
            "devices",
            "pid",
        ] {
            let end = format!("/{forbidden}");
            let found = found(&value, |way, _| way.ends_with(&end));
            assert!(found.is_empty(), "{name}: {found:?}");
        }
        let mut sockets = Vec::new();
        visit(&value, "", &mut |way, value| {
            if value.as_str().is_some_and(|text| text.contains("docker.sock")) {
                sockets.push(way.to_owned());
            }
        });
        assert!(sockets.is_empty(), "{name}: {sockets:?}");
    }
    let pod = &yaml("kubernetes/deployment.yaml")["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["runAsUser"].to_string(), user);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(pod["automountServiceAccountToken"], false);
    let context = &pod["containers"][0]["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(words(&context["capabilities"]["drop"]), ["ALL"]);
    let prowess = &yaml("compose.yaml")["services"]["prowess"];
    assert_eq!(prowess["read_only"], true);
    assert_eq!(prowess["user"], format!("{user}:{user}"));
    assert_eq!(words(&prowess["cap_drop"]), ["ALL"]);
    assert_eq!(words(&prowess["security_opt"]), ["no-new-privileges:true"]);
}

#[test]
fn no_secret_stands_in_a_file() {
    let secret = yaml("kubernetes/secret.example.yaml");
    for (key, value) in secret["stringData"].as_object().unwrap() {
        assert_eq!(value, "", "{key}");
    }
    assert!(secret["data"].is_null());
    for line in text("env.example").lines().filter(|line| !line.starts_with('#')) {
        assert!(line.ends_with('='), "{line}");
    }
    let is_secret = |name: &str| {
        let name = name.to_lowercase();
        ["password", "secret", "access_key", "token", "store_url"]
            .iter()
            .any(|it| name.contains(it))
    };
    let compose = yaml("compose.yaml");
    for (way, value) in found(&compose, |way, _| way.contains("/environment/")) {
        let (name, value) = (way.rsplit('/').next().unwrap(), value.as_str().unwrap().to_owned());
        if is_secret(name) {
            assert!(value.contains("${") && value.contains(":?"), "{way} is no reference");
            assert!(!has_password(&value), "{way}");
        }
    }
    let deployment = yaml("kubernetes/deployment.yaml");
    for variable in
        deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap()
    {
        assert!(variable["value"].is_null() && variable["valueFrom"].is_object(), "{variable}");
    }
    for (name, text) in settings() {
        assert!(!text.lines().any(has_password), "{name}");
    }
    assert!(has_password("postgres://prowess:hunter2@postgres/prowess"), "the control");
}

/// Whether a URL with a password is in it that is not taken from elsewhere.
fn has_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split('/').next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user).unwrap_or_default();
        user.split_once(':').is_some_and(|(_, password)| !password.starts_with('$'))
    })
}
