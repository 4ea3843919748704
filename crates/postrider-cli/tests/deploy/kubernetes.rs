//! The file for Kubernetes, held against the schema of its API.

use std::process::Command;

use postrider_testkit::Folder;
use serde_json::Value;

use super::*;

/// The parts of a Kubernetes file, and what is wrong with them.
fn kubernetes(text: &str) -> (Vec<Value>, Vec<String>) {
    let schema: Value = serde_json::from_str(include_str!("kubernetes.schema.json")).expect("a schema");
    let documents = yaml::parse_typed(text).unwrap_or_else(|error| panic!("{error}"));
    let mut faults = Vec::new();
    for document in &documents {
        let part = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        let kind = format!("{}/{}", part("apiVersion"), part("kind"));
        match &schema["kinds"][&kind] {
            Value::Null => faults.push(format!("there is no schema of {kind}")),
            of_kind => {
                let found = schema::faults(document, of_kind, &schema["definitions"]);
                faults.extend(found.into_iter().map(|fault| format!("{kind}{fault}")));
            }
        }
    }
    (documents, faults)
}

/// What the program makes of the settings, with the secret in the file that they name.
fn understood(settings: &str, key: &str, secret: &str) -> Value {
    let folder = Folder::new();
    std::fs::write(folder.path().join(key), secret).expect("the secret");
    let mounted = format!("file:/run/secrets/postrider/{key}");
    assert!(settings.contains(&mounted), "{settings}");
    let settings = settings.replace("/run/secrets/postrider", &folder.path().display().to_string());
    std::fs::write(folder.path().join("p.toml"), settings).expect("the settings");
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    let output = command
        .args(["config", "check", "--json", "--config"])
        .arg(folder.path().join("p.toml"))
        .env_clear()
        .output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn what_kubernetes_is_given_is_as_its_api_has_it_and_fits_together() {
    let (documents, faults) = kubernetes(&text("deploy/kubernetes.yaml"));
    assert!(faults.is_empty(), "{faults:#?}");
    let of = |kind: &str| {
        documents.iter().find(|each| each["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
    };
    let deployment = &of("Deployment")["spec"];
    let pod = &deployment["template"]["spec"];
    let relay = &pod["containers"][0];
    // Who selects the relays finds them, and not the job.
    let labels = &deployment["template"]["metadata"]["labels"];
    for selector in [
        &deployment["selector"]["matchLabels"],
        &of("Service")["spec"]["selector"],
        &of("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ] {
        let all = selector.as_object().expect("labels");
        assert!(!all.is_empty() && all.iter().all(|(name, value)| &labels[name] == value), "{selector}");
        let of_job = &of("Job")["spec"]["template"]["metadata"]["labels"];
        assert!(all.iter().any(|(name, value)| &of_job[name] != value), "{selector}");
    }
    let port = relay["ports"][0]["containerPort"].as_u64().expect("a port");
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(
            (&relay[probe]["httpGet"]["path"], &relay[probe]["httpGet"]["port"]),
            (&path.into(), &relay["ports"][0]["name"])
        );
    }
    assert_eq!(of("Service")["spec"]["ports"][0]["port"], port);
    // What is mounted is there, and the settings are understood, with the secret where it is mounted.
    for container in [relay, &of("Job")["spec"]["template"]["spec"]["containers"][0]] {
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        let volumes = pod["volumes"].as_array().expect("volumes");
        for mount in mounts {
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).expect("a volume");
            let source = if volume["secret"].is_object() {
                &volume["secret"]["secretName"]
            } else {
                &volume["configMap"]["name"]
            };
            let kind = if volume["secret"].is_object() { "Secret" } else { "ConfigMap" };
            assert_eq!(&of(kind)["metadata"]["name"], source);
        }
        let settings = format!("{}/postrider.toml", mounts[0]["mountPath"].as_str().expect("a path"));
        assert_eq!(container["args"][2], settings.as_str());
    }
    let (key, secret) =
        of("Secret")["stringData"].as_object().and_then(|all| all.iter().next()).expect("a secret");
    let settings = of("ConfigMap")["data"]["postrider.toml"].as_str().expect("settings");
    let understood = understood(settings, key, secret.as_str().expect("text"));
    assert_eq!(understood["http"]["listen"], format!("0.0.0.0:{port}"));
}

/// The versions of Kubernetes by whose schemas the file is checked.
const VERSIONS: [&str; 2] = ["1.30", "1.37"];

/// Whether the schemas that Kubernetes publishes of its API take a file, and what is said of it.
fn by_its_own_schemas(text: &str, version: &str) -> (bool, String) {
    let folder = Folder::new();
    std::fs::write(folder.path().join("kubernetes.yaml"), text).expect("the file");
    let mut python = Command::new(xtask::python::ready().expect("Python with the schemas of Kubernetes"));
    python.args(["-m", "kubernetes_validate", "--strict", "-k", version]).arg("kubernetes.yaml");
    let output = python.current_dir(folder.path()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said.into_owned())
}

#[test]
fn the_schemas_of_kubernetes_itself_take_the_file() {
    let file = text("deploy/kubernetes.yaml");
    for version in VERSIONS {
        let (taken, said) = by_its_own_schemas(&file, version);
        assert!(taken && !said.contains("WARN"), "{version}: {said}");
        assert_eq!(said.matches(" passed for resource ").count(), 6, "{version}: {said}");
    }
    for (right, wrong) in [("readinessProbe:", "readynessProbe:"), ("replicas: 2", "replicas: \"2\"")] {
        let (taken, said) = by_its_own_schemas(&file.replacen(right, wrong, 1), "1.37");
        assert!(!taken, "{wrong}: {said}");
    }
}

#[test]
fn the_documents_name_the_versions_that_the_file_is_checked_by() {
    let said = format!("the schemas that Kubernetes publishes of its versions {}", VERSIONS.join(" and "));
    for document in ["deploy/README.md", "deploy/kubernetes.yaml"] {
        let text = text(document);
        assert!(text.contains(&said) && text.contains("not run on"), "{document} must say: {said}");
    }
}

/// Our own check finds what is wrong, also where those schemas say only that it is a text or a number.
#[test]
fn what_kubernetes_would_pass_over_or_refuse_is_found_out() {
    let file = text("deploy/kubernetes.yaml");
    for (right, wrong, fault) in [
        (
            "readinessProbe:",
            "readynessProbe:",
            "Deployment.spec.template.spec.containers[0].readynessProbe: there is no such field",
        ),
        ("replicas: 2", "replicas: \"2\"", "Deployment.spec.replicas: \"2\" is not of the type integer"),
        (
            "prometheus.io/port: \"7678\"",
            "prometheus.io/port: 7678",
            "annotations.prometheus.io/port: 7678 is not of the type string",
        ),
        ("containerPort: 7678", "containerPort: 76780", "containerPort: 76780 is out of bounds"),
        ("apiVersion: apps/v1", "apiVersion: apps/v1beta1", "there is no schema of apps/v1beta1/Deployment"),
        ("restartPolicy: OnFailure", "restartPolicy: Sometimes", "\"Sometimes\" is none of"),
        ("memory: 256Mi", "memory: 256MB", "\"256MB\" is no quantity"),
        (
            "          image: registry.example/postrider:0.1.0\n          args: [\"relay\"",
            "          args: [\"relay\"",
            "image is missing",
        ),
        ("name: postrider-migrate", "name: Postrider_migrate", "\"Postrider_migrate\" is no dns-label"),
    ] {
        assert!(file.contains(right), "{right}");
        let (_, faults) = kubernetes(&file.replacen(right, wrong, 1));
        assert!(faults.iter().any(|found| found.contains(fault)), "{wrong}: {faults:?}");
    }
    let crossed = "a: &x 1\n---\nb: *x\n";
    assert!(yaml::parse_typed(crossed).is_err(), "an alias of another document is refused, as by Kubernetes");
}
