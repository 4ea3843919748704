//! Our AsyncAPI documents, read by the parser of the AsyncAPI project.
//!
//! It needs Node.js with npm, which fetches the parser once into the target folder.

#[path = "../outputs/commerce.rs"]
mod commerce;
#[path = "../umbra/catalog.rs"]
#[allow(dead_code)]
mod umbra;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use postrider_catalog::{CatalogFile, FORMAT, render};
use serde_json::{Value, json};

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
