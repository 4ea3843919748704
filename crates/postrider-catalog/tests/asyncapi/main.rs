//! Our AsyncAPI documents, read by the parser of the AsyncAPI project.
//!
//! It needs Node.js with npm, which fetches the parser once into the target folder.

#[path = "../outputs/commerce.rs"]
mod commerce;
#[path = "../umbra/catalog.rs"]
#[allow(dead_code)]
mod umbra;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use postrider_catalog::{Catalog, CatalogFile, FORMAT, render};
use postrider_core::EventMapping;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Tree {
    size: u8,
    left: Option<Box<Tree>>,
    right: Option<Box<Tree>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op")]
enum Expression {
    Add { left: Box<Expression>, right: Box<Expression> },
    Number { value: u64 },
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Address {
    city: String,
    place: Option<(f64, f64)>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Means {
    Card { number: String },
    Cash { till: u8 },
    Nothing,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Shipment {
    extra: Value,
    extras: Vec<Value>,
    amount: u128,
    balance: i128,
    #[serde(flatten)]
    address: Address,
    means: Means,
    by_number: BTreeMap<i32, String>,
    by_line: Option<BTreeMap<u64, Tree>>,
    none: (),
}

/// A catalog of types, with the schemas that schemars writes and what the types were asked.
fn of_types() -> CatalogFile {
    fn with<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static>(
        catalog: Catalog,
        name: &str,
    ) -> Catalog {
        catalog.mapping(&EventMapping::new(name, "Order", |_: &T| "1".to_owned()).stream("orders"))
    }
    let catalog = with::<Tree>(Catalog::new("shop"), "TreePlanted");
    let catalog = with::<Expression>(catalog, "ExpressionEvaluated");
    let catalog = with::<Shipment>(catalog, "OrderShipped");
    catalog.file().clone()
}

/// What the parser says of documents, in their order.
fn verdicts(name: &str, documents: &[String]) -> Vec<Value> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/asyncapi");
    let modules = xtask::node::locked(&project).expect("a Node.js with the parser of AsyncAPI");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("asyncapi-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    // Node.js finds packages beside the script that imports them.
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).expect("a link");
    fs::copy(project.join("validate.mjs"), folder.join("validate.mjs")).expect("a copy");
    let mut node = Command::new("node");
    node.current_dir(&folder).arg("validate.mjs");
    for (number, document) in documents.iter().enumerate() {
        let file = format!("{number}.json");
        fs::write(folder.join(&file), document).expect("a file");
        node.arg(file);
    }
    let said = xtask::process::output(&mut node, "read AsyncAPI documents").expect("a verdict");
    serde_json::from_str(&said).expect("JSON")
}

#[test]
fn the_parser_of_asyncapi_accepts_what_we_write() {
    let empty =
        CatalogFile { format: FORMAT, system: "new".to_owned(), events: Vec::new(), subscribers: Vec::new() };
    let catalogs = [umbra::umbra(), commerce::commerce(), empty];
    let verdicts = verdicts("accepted", &catalogs.map(|catalog| render::asyncapi(&catalog)));
    for verdict in &verdicts {
        assert_eq!(verdict["errors"], json!([]), "{verdict}");
    }
    let counts = |verdict: &Value| ["channels", "operations", "messages"].map(|what| verdict[what].as_u64());
    // Umbra: six streams; each is sent to by its context; licensing reads 2 of them, billing 2, notification 3, audit all 6.
    assert_eq!(counts(&verdicts[0]), [Some(6), Some(6 + 2 + 2 + 3 + 6), Some(30)]);
    // Commerce: one stream and four topics; a publisher, a subscription that reads one and writes four, four consumers.
    assert_eq!(counts(&verdicts[1]), [Some(1 + 4), Some(1 + 5 + 4), Some(6)]);
    assert_eq!(counts(&verdicts[2]), [Some(0), Some(0), Some(0)]);
}

#[test]
fn the_parser_of_asyncapi_accepts_the_schemas_of_types() {
    let catalog = of_types();
    for name in ["TreePlanted", "ExpressionEvaluated", "OrderShipped"] {
        let event = catalog.event(name).expect("the event");
        assert!(event.payload.is_some(), "{name} has a schema");
    }
    let verdicts = verdicts("types", &[render::asyncapi(&catalog)]);
    assert_eq!(
        (&verdicts[0]["errors"], &verdicts[0]["messages"]),
        (&json!([]), &json!(3)),
        "{}",
        verdicts[0]
    );
}

/// Without this, a parser that accepts everything would make the other test pass.
#[test]
fn the_parser_of_asyncapi_refuses_what_is_broken() {
    let document: Value = serde_json::from_str(&render::asyncapi(&commerce::commerce())).expect("JSON");
    let mut dangling = document.clone();
    dangling["components"]["schemas"]
        .as_object_mut()
        .expect("schemas")
        .retain(|name, _| !name.ends_with("Money"));
    let mut misspelled = document.clone();
    misspelled["operations"]["commerce-api.send.stream.commerce"]["action"] = json!("sends");
    for verdict in verdicts("refused", &[dangling.to_string(), misspelled.to_string()]) {
        assert_ne!(verdict["errors"], json!([]), "{verdict}");
    }
}
