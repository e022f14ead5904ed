//! Quantities and times in the form in which upstream stores them, found by the schema.

use crate::age;
use crate::schema::{Form, Shape};
use interlock_quantity::Quantity;
use jiff::Timestamp;
use serde_json::{Value, json};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";

/// Rewrites `1000m` as `1` and a time in another zone as UTC. What cannot be read is left for the
/// checks to refuse. Objects are no deeper than the decoder lets them be.
pub(crate) fn canonicalize(value: &mut Value, shape: Shape<'_>) {
    match shape.node().name.as_deref() {
        Some(QUANTITY) => {
            if let Ok(quantity) = Quantity::from_value(value) {
                *value = json!(quantity.to_string());
            }
            return;
        }
        Some(TIME) => return rewrite_time(value, "%Y-%m-%dT%H:%M:%SZ"),
        Some(MICRO_TIME) => return rewrite_time(value, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        Some(_) | None => {}
    }
    match (value, &shape.node().form) {
        (Value::Object(object), Form::Object(_)) => {
            for (key, value) in object {
                if let Some(shape) = shape.field(key) {
                    canonicalize(value, shape);
                }
            }
        }
        (Value::Object(object), Form::Map(map)) => {
            let values = shape.at(map.values);
            object.values_mut().for_each(|value| canonicalize_element(value, values));
        }
        (Value::Array(list), Form::List(_)) => {
            let Some(items) = shape.items() else { return };
            list.iter_mut().for_each(|item| canonicalize_element(item, items));
        }
        _ => {}
    }
}

/// An element of a map or a list. One that is null is Go's zero value: the element is there, and empty.
fn canonicalize_element(value: &mut Value, shape: Shape<'_>) {
    if value.is_null() {
        match (shape.node().name.as_deref(), &shape.node().form) {
            (Some(QUANTITY), _) => *value = json!("0"),
            (None, Form::String) => *value = json!(""),
            _ => {}
        }
        return;
    }
    canonicalize(value, shape);
}

fn rewrite_time(value: &mut Value, format: &str) {
    let Some(moment) = value.as_str().and_then(age::parse) else { return };
    *value = json!(written(moment, format));
}

fn written(moment: Timestamp, format: &str) -> String {
    moment.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{List, Map, Node, Schema};

    #[test]
    fn quantities_and_times_are_rewritten_where_the_schema_has_them() {
        let mut schema = Schema::default();
        let named = |name: &str| Node { name: Some(name.into()), ..Node::default() };
        let quantity = schema.add(named(QUANTITY));
        let time = schema.add(named(MICRO_TIME));
        let times = schema.add(Node {
            form: Form::List(List { items: time, ..List::default() }),
            ..Node::default()
        });
        let quantities = schema.add(Node {
            form: Form::Map(Map { values: quantity, ..Map::default() }),
            ..Node::default()
        });
        let mut amounts = json!({"cpu": "1000m", "memory": 1024, "odd": "x"});
        canonicalize(&mut amounts, schema.at(quantities));
        assert_eq!(amounts, json!({"cpu": "1", "memory": "1024", "odd": "x"}));
        let mut moments = json!(["2024-01-01T01:00:00+01:00", "soon"]);
        canonicalize(&mut moments, schema.at(times));
        assert_eq!(moments, json!(["2024-01-01T00:00:00.000000Z", "soon"]));
    }
}
