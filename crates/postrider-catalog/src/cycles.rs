//! Cycles in a graph of names.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// For each component of names that lead to one another, the shortest cycle from the first of them.
///
/// Each way begins and ends with the same name. The cost grows with the names and the edges.
pub(crate) fn cycles<'n>(edges: &BTreeMap<&'n str, Vec<&'n str>>) -> Vec<Vec<&'n str>> {
    let mut cycles: Vec<Vec<&str>> =
        components(edges).iter().filter_map(|component| shortest_cycle(edges, component)).collect();
    cycles.sort_unstable();
    cycles
}

/// The edges that are part of a cycle.
pub(crate) fn circular<'n>(edges: &BTreeMap<&'n str, Vec<&'n str>>) -> HashSet<(&'n str, &'n str)> {
    let mut circular = HashSet::new();
    for component in components(edges) {
        for from in &component {
            let inside = edges.get(from).into_iter().flatten().filter(|to| component.contains(*to));
            circular.extend(inside.map(|to| (*from, *to)));
        }
    }
    circular
}

/// The names that lead to one another, by Tarjan's algorithm without recursion. A name alone counts if it leads to itself.
fn components<'n>(edges: &BTreeMap<&'n str, Vec<&'n str>>) -> Vec<HashSet<&'n str>> {
    let mut search = Search::default();
    let mut components = Vec::new();
    for root in edges.keys() {
        if search.numbers.contains_key(root) {
            continue;
        }
        search.enter(root);
        let mut path = vec![(*root, 0)];
        while let Some((name, next)) = path.last_mut() {
            let name = *name;
            let followers = edges.get(name).map_or(&[][..], Vec::as_slice);
            if let Some(follower) = followers.get(*next).copied() {
                *next += 1;
                if !search.numbers.contains_key(follower) {
                    search.enter(follower);
                    path.push((follower, 0));
                } else if search.open.contains(follower) {
                    search.lower(name, search.numbers[follower]);
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                search.lower(before, search.lowest[name]);
            }
            let component = search.leave(name);
            if component.len() > 1 || followers.iter().any(|follower| component.contains(follower)) {
                components.push(component);
            }
        }
    }
    components
}

/// What Tarjan's algorithm keeps.
#[derive(Default)]
struct Search<'n> {
    numbers: HashMap<&'n str, usize>,
    lowest: HashMap<&'n str, usize>,
    stack: Vec<&'n str>,
    open: HashSet<&'n str>,
}

impl<'n> Search<'n> {
    fn enter(&mut self, name: &'n str) {
        let number = self.numbers.len();
        self.numbers.insert(name, number);
        self.lowest.insert(name, number);
        self.stack.push(name);
        self.open.insert(name);
    }

    fn lower(&mut self, name: &'n str, number: usize) {
        self.lowest.entry(name).and_modify(|lowest| *lowest = number.min(*lowest));
    }

    /// The component that ends with this name; empty if the name belongs to one that is still open.
    fn leave(&mut self, name: &'n str) -> HashSet<&'n str> {
        let mut component = HashSet::new();
        if self.lowest[name] != self.numbers[name] {
            return component;
        }
        while let Some(member) = self.stack.pop() {
            self.open.remove(member);
            component.insert(member);
            if member == name {
                break;
            }
        }
        component
    }
}

/// The shortest cycle from the first name of a component.
fn shortest_cycle<'n>(
    edges: &BTreeMap<&'n str, Vec<&'n str>>,
    component: &HashSet<&'n str>,
) -> Option<Vec<&'n str>> {
    let start = *component.iter().min()?;
    let mut came_from: HashMap<&str, &str> = HashMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(name) = waiting.pop_front() {
        for follower in edges.get(name).into_iter().flatten().copied() {
            if follower == start {
                let mut way = vec![start, name];
                while let Some(before) = came_from.get(way[way.len() - 1]) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if component.contains(follower) && !came_from.contains_key(follower) {
                came_from.insert(follower, name);
                waiting.push_back(follower);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(pairs: &[(&'static str, &'static str)]) -> BTreeMap<&'static str, Vec<&'static str>> {
        let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (from, to) in pairs {
            edges.entry(from).or_default().push(to);
        }
        edges
    }

    #[test]
    fn each_component_is_shown_by_its_shortest_cycle() {
        for (pairs, ways) in [
            (vec![("A", "B"), ("B", "C")], vec![]),
            (vec![("A", "B"), ("B", "A")], vec!["A → B → A"]),
            (vec![("A", "A")], vec!["A → A"]),
            (vec![("B", "C"), ("C", "D"), ("D", "B"), ("A", "B")], vec!["B → C → D → B"]),
            (vec![("A", "B"), ("B", "C"), ("C", "A"), ("B", "A")], vec!["A → B → A"]),
            (vec![("A", "B"), ("B", "A"), ("C", "D"), ("D", "C")], vec!["A → B → A", "C → D → C"]),
        ] {
            let found: Vec<String> = cycles(&edges(&pairs)).iter().map(|way| way.join(" → ")).collect();
            assert_eq!(found, ways, "{pairs:?}");
        }
    }

    #[test]
    fn the_edges_of_a_circle_are_told_from_those_that_lead_into_it() {
        let edges = edges(&[("A", "B"), ("B", "C"), ("C", "B"), ("C", "D")]);
        assert_eq!(circular(&edges), HashSet::from([("B", "C"), ("C", "B")]));
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let names: Vec<String> = (0..100_000).map(|number| format!("E{number:06}")).collect();
        let chain = names.windows(2).map(|pair| (pair[0].as_str(), vec![pair[1].as_str()])).collect();
        assert!(cycles(&chain).is_empty());
    }
}
