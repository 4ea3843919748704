//! How the work of a catalog grows with its events.

mod linked;
mod material;

use std::hint::black_box;
use std::time::Instant;

use postrider_catalog::{Catalog, CatalogFile, Lock, check, problems, render};

use crate::median;
use crate::report::Report;
use material::Material;

const FEW: usize = 10;
const MANY: usize = 500;
/// The bar: fifty times the events, with some room for what a larger memory costs.
const BAR: f64 = 60.0;

/// A part of the work, by its name.
type Part = (&'static str, fn(&Material));

const PARTS: [Part; 16] = [
    ("build", |material| drop(black_box(linked::catalog(material.count)))),
    ("parse", |material| drop(black_box(CatalogFile::parse(&material.text)))),
    ("from_file", |material| drop(black_box(Catalog::from_file(material.file.clone())))),
    ("check", |material| drop(black_box(check(&material.file, &material.lock)))),
    ("check_linked", |material| drop(black_box(material.linked.check(&material.linked_lock)))),
    ("check_log", |material| drop(black_box(linked::check_log(&material.linked, &material.log)))),
    ("lock_update", |material| Lock::new().update(&material.file)),
    ("lock_parse", |material| drop(black_box(Lock::parse(&material.lock_text)))),
    ("show", |material| _ = black_box(material.shown())),
    ("names", |material| drop(black_box(material.conventions.refusals(&material.file)))),
    ("problems", |material| drop(black_box(problems(&material.file)))),
    ("markdown", |material| drop(black_box(render::markdown(&material.file)))),
    ("mermaid", |material| drop(black_box(render::mermaid(&material.file)))),
    ("asyncapi", |material| drop(black_box(render::asyncapi(&material.file)))),
    ("eventcatalog", |material| drop(black_box(render::event_catalog(&material.file)))),
    ("json", |material| drop(black_box(render::json(&material.file)))),
];

/// A line for each part of the work, and one for all of it.
pub fn run(report: &mut Report, quick: bool) {
    let (few, many) = (Material::of(FEW), Material::of(MANY));
    let turns = if quick { 5 } else { 15 };
    let mut sums = (0.0, 0.0);
    for (name, part) in PARTS {
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..turns {
            // As many events on both sides: a clock measures short times badly.
            times.0.push(seconds(|| (0..MANY / FEW).for_each(|_| part(&few))) * FEW as f64 / MANY as f64);
            times.1.push(seconds(|| part(&many)));
        }
        let (few, many) = (median(times.0), median(times.1));
        sums = (sums.0 + few, sums.1 + many);
        line(report, name, few, many);
    }
    line(report, "all", sums.0, sums.1);
}

fn line(report: &mut Report, name: &str, few: f64, many: f64) {
    let detail = format!("{FEW} take {:.3} ms, {MANY} take {:.3} ms", few * 1e3, many * 1e3);
    report.at_most(
        &format!("catalog {name}, {MANY} events against {FEW}"),
        many / few,
        BAR,
        "times",
        &detail,
    );
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
