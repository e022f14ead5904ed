//! What a bundle is, and what it is not.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_api::rollouts::BundleRevisionSpec;
use serde_json::json;

fn file(name: &str, text: &str) -> File {
    File { name: name.to_owned(), text: text.to_owned() }
}

fn config(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"},
        "data": {"a": data}})
}

fn bundle(objects: &[Value]) -> Bundle {
    Bundle::from_objects(objects.to_vec()).expect("it is a bundle")
}

fn flaws(files: &[File]) -> Vec<String> {
    let flaws = Bundle::from_files(files).expect_err("it is none");
    flaws.iter().map(Flaw::to_string).collect()
}

#[test]
fn the_same_objects_have_the_same_digest_however_they_are_written() {
    let yaml = "# two of them\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: shop}\n\
                data: {a: '2'}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata:\n  namespace: shop\n  name: a\n\
                data:\n  a: \"1\"\n";
    let one = Bundle::from_files(&[file("all.yaml", yaml)]).expect("a bundle");
    let two = Bundle::from_files(&[
        file("b.json", &config("b", "2").to_string()),
        file("a.json", &config("a", "1").to_string()),
    ])
    .expect("a bundle");
    assert_eq!(one.digest(), two.digest());
    assert_eq!(one.digest(), bundle(&[config("a", "1"), config("b", "2")]).digest());
    assert_ne!(one.digest(), bundle(&[config("a", "1"), config("b", "3")]).digest());
    assert_eq!(one.text().lines().count(), 2);
    let ids: Vec<String> = one.objects().iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(ids, ["/ConfigMap/shop/a", "/ConfigMap/shop/b"]);
}

#[test]
fn the_digest_is_that_of_the_text() {
    let one = bundle(&[config("a", "1")]);
    assert_eq!(
        one.text(),
        "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"1\"},\"kind\":\"ConfigMap\",\
         \"metadata\":{\"name\":\"a\",\"namespace\":\"shop\"}}\n"
    );
    assert_eq!(one.digest(), digest_of(one.text().as_bytes()));
    // What `printf '' | sha256sum` prints.
    assert_eq!(
        digest_of(b""),
        "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

#[test]
fn what_servers_and_rollouts_wrote_is_not_in_it() {
    let mut exported = config("a", "1");
    exported["status"] = json!({"ready": true});
    exported["metadata"]["uid"] = json!("u");
    exported["metadata"]["resourceVersion"] = json!("7");
    exported["metadata"]["managedFields"] = json!([{}]);
    exported["metadata"]["labels"] = json!({"interlock.dev/rollout": "w"});
    exported["metadata"]["annotations"] =
        json!({"interlock.dev/id": "x", "interlock.dev/token": "1", "interlock.dev/content": "c"});
    assert_eq!(bundle(&[exported.clone()]).digest(), bundle(&[config("a", "1")]).digest());
    exported["metadata"]["annotations"]["interlock.dev/wave"] = json!("3");
    assert_ne!(bundle(&[exported]).digest(), bundle(&[config("a", "1")]).digest());
}

#[test]
fn lists_are_their_items() {
    let list =
        json!({"apiVersion": "v1", "kind": "List", "items": [config("a", "1"), config("b", "2")]});
    assert_eq!(bundle(&[list]).digest(), bundle(&[config("a", "1"), config("b", "2")]).digest());
    let typed = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": [
        {"metadata": {"name": "a", "namespace": "shop"}, "data": {"a": "1"}}]});
    assert_eq!(bundle(&[typed]).digest(), bundle(&[config("a", "1")]).digest());
}

#[test]
fn a_flaw_says_in_which_file_line_and_object_it_is() {
    let good = config("a", "1").to_string();
    let again = format!("# a comment\n---\n{good}\n---\n\n{good}\n");
    let found = flaws(&[file("a.yaml", &good), file("b.yaml", &again)]);
    assert_eq!(
        found,
        [
            "b.yaml:3: /ConfigMap/shop/a: it is in the bundle already, at a.yaml:1: leave one of them out",
            "b.yaml:6: /ConfigMap/shop/a: it is in the bundle already, at a.yaml:1: leave one of them out",
        ]
    );
    for (text, words) in [
        ("---\n- 1\n", "x.yaml:2: it is no object"),
        ("kind: Pod\nmetadata: {name: web}\n", "x.yaml:1: Pod web: apiVersion is missing"),
        ("apiVersion: v1\nmetadata: {name: web}\n", "x.yaml:1: web: kind is missing"),
        ("apiVersion: v1\nkind: Pod\n", "x.yaml:1: Pod: metadata.name is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: w}\n", "x.yaml:1: Pod: generateName"),
        ("apiVersion: /v1\nkind: Pod\nmetadata: {name: w}\n", "x.yaml:1: Pod w: apiVersion is"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a/b}\n", "x.yaml:1: Pod a/b: no name"),
    ] {
        let found = flaws(&[file("x.yaml", text)]);
        assert!(found.len() == 1 && found[0].starts_with(words), "{text}: {found:?}");
    }
    let found = flaws(&[file("x.yaml", "# one\n---\nb: 2\nc: [\n")]);
    let at_the_end = found[0].starts_with("x.yaml:4: ") || found[0].starts_with("x.yaml:5: ");
    assert!(found.len() == 1 && at_the_end, "{found:?}");
    assert_eq!(flaws(&[file("x.yaml", "# nothing\n---\n")]), ["there is no object in the bundle"]);
    let unnumbered = Bundle::from_objects([json!(1)]).expect_err("it is none");
    assert!(unnumbered[0].to_string().starts_with("object 1: it is no object"));
}

#[test]
fn a_bundle_that_is_too_large_is_refused() {
    let large = "x".repeat(1 << 20);
    let objects: Vec<Value> = (0..9).map(|n| config(&format!("c{n}"), &large)).collect();
    let flaws = Bundle::from_objects(objects).expect_err("it is too large");
    assert_eq!(flaws[0].reason, FlawReason::TooLarge);
}

/// Text that cannot be compressed well, the same each time.
fn noise(bytes: usize, seed: u32) -> String {
    let mut state = seed | 1;
    let letter = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'!' + (*state >> 24) as u8 % 90)
    };
    let noise: String = (0..bytes).map(|_| letter(&mut state)).collect();
    noise.replace(['"', '\\'], "x")
}

fn large() -> Bundle {
    let objects: Vec<Value> =
        (0..7).map(|n| config(&format!("c{n}"), &noise(200 << 10, n))).collect();
    bundle(&objects)
}

#[test]
fn a_bundle_in_parts_is_the_same_bundle() {
    for bundle in [bundle(&[config("a", "1")]), large()] {
        let parts = revisions(&bundle);
        assert_eq!(parts.len(), bundle.text().len().div_ceil(PART_BYTES));
        let ids: Vec<String> = parts.iter().flat_map(|part| part.ids.clone()).collect();
        let known: Vec<String> = bundle.objects().iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(ids, known);
        let backwards: Vec<BundleRevisionSpec> = parts.iter().rev().cloned().collect();
        assert_eq!(joined(bundle.digest(), &backwards).as_ref(), Ok(&bundle));
        assert_eq!(unpacked(bundle.digest(), &compressed(&bundle)).as_ref(), Ok(&bundle));
        for part in parts {
            assert!(part.data.len() < 1 << 20);
        }
    }
}

#[test]
fn parts_that_are_not_all_of_one_bundle_are_refused() {
    let (one, other) = (large(), bundle(&[config("a", "1")]));
    let parts = revisions(&one);
    assert!(parts.len() > 1);
    let mut alien = parts.clone();
    alien[1].digest = other.digest().to_owned();
    let mut twice = parts.clone();
    twice[1] = twice[0].clone();
    let mut swapped = parts.clone();
    let data = swapped[0].data.clone();
    swapped[1].data = data;
    let mut scribble = parts.clone();
    scribble[0].data = "!".to_owned();
    let mut cut_off = parts.clone();
    cut_off[0].data = STANDARD.encode(b"nothing");
    for (parts, why) in [
        (&parts[1..], "missing"),
        (&[][..], "none"),
        (&alien, "alien"),
        (&twice, "twice"),
        (&swapped, "swapped"),
        (&scribble, "no base64"),
        (&cut_off, "no part"),
    ] {
        let flaw = joined(one.digest(), parts).expect_err(why);
        assert_eq!(flaw.reason, FlawReason::Broken, "{why}");
    }
    assert!(joined(other.digest(), &parts).is_err());
}

#[test]
fn a_part_that_claims_to_be_huge_is_refused() {
    let bomb = zstd::bulk::compress(&vec![b'x'; 64 << 20], 19).expect("it can be compressed");
    assert!(bomb.len() < 1 << 16);
    assert_eq!(decompressed(&bomb).expect_err("it is too large").reason, FlawReason::Broken);
}

#[test]
fn a_digest_of_a_text_in_another_form_is_refused() {
    let text =
        b"{\"kind\": \"ConfigMap\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"a\"}}\n";
    let packed = vec![zstd::bulk::compress(text, 3).expect("it can be compressed")];
    let flaw = unpacked(&digest_of(text), &packed).expect_err("it has spaces");
    assert!(flaw.message.contains("another form"), "{flaw}");
}

#[test]
fn an_id_reads_as_it_is_shown() {
    for text in ["apps/Deployment/shop/web", "/Namespace//shop"] {
        assert_eq!(ObjectId::read(text).map(|id| id.to_string()).as_deref(), Some(text));
    }
    for text in ["", "Pod", "a/b/c", "///", "/Pod/x/", "/a/b/c/d"] {
        assert_eq!(ObjectId::read(text), None, "{text}");
    }
}
