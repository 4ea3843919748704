//! The lines of a benchmark: figure, bar, met or missed.

use serde_json::{Value, json};

/// Collects lines and prints each as it comes.
pub struct Report {
    json: bool,
    lines: Vec<Value>,
    missed: usize,
}

impl Report {
    /// Prints as text, or at the end as one JSON document.
    pub fn new(json: bool) -> Self {
        Self { json, lines: Vec::new(), missed: 0 }
    }

    /// What is being done, for who waits.
    pub fn say(&self, what: &str) {
        eprintln!("… {what}");
    }

    /// A figure that must be at least the bar.
    pub fn at_least(&mut self, name: &str, figure: f64, bar: f64, unit: &str, detail: &str) {
        self.line(name, figure, bar, ">=", unit, figure >= bar, detail);
    }

    /// A figure that must be at most the bar.
    pub fn at_most(&mut self, name: &str, figure: f64, bar: f64, unit: &str, detail: &str) {
        self.line(name, figure, bar, "<=", unit, figure <= bar, detail);
    }

    /// A figure without a bar.
    pub fn note(&mut self, name: &str, figure: f64, unit: &str, detail: &str) {
        self.lines.push(json!({ "name": name, "figure": figure, "unit": unit, "detail": detail }));
        if !self.json {
            println!("{name}: {figure:.1} {unit} ({detail})");
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn line(
        &mut self,
        name: &str,
        figure: f64,
        bar: f64,
        relation: &str,
        unit: &str,
        met: bool,
        detail: &str,
    ) {
        let verdict = if met { "met" } else { "missed" };
        self.missed += usize::from(!met);
        self.lines.push(json!({
            "name": name, "figure": figure, "relation": relation, "bar": bar, "unit": unit, "verdict": verdict, "detail": detail
        }));
        if !self.json {
            println!("{name}: {figure:.1} {unit} (bar {relation} {bar} {unit}) {verdict} [{detail}]");
        }
    }

    /// Ends it; whether every bar was met.
    pub fn finish(self) -> bool {
        if self.json {
            println!("{}", Value::Array(self.lines));
        }
        self.missed == 0
    }
}
