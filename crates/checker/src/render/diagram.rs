//! A trace as a sequence diagram: one HTML file that needs nothing else.

use super::{changes, cut, way, wrap};
use crate::report::{Trace, TraceState};
use std::fmt::Write;

/// Width of the page that the drawing tries to keep to.
const PAGE: usize = 1300;
/// Room for the numbers of the states.
const GUTTER: usize = 48;
/// Room that the lanes share at least and, while that leaves them readable, at most.
const LANES: (usize, usize) = (420, 800);
/// A lane is at least and at most this wide.
const LANE: (usize, usize) = (92, 180);
const HEAD: usize = 46;
const LINE: usize = 17;
/// Lines of one changed variable, and changed variables of one step, before the rest is cut.
const MOST_LINES: usize = 3;
const MOST_CHANGES: usize = 8;
/// Where the arrow is, counted from the top of its row.
const ARROW: usize = 36;
/// Extra room above the first row of a loop and below the last row.
const LOOP_TOP: usize = 30;
const FOOT: usize = 34;

/// The trace as a sequence diagram in a self-contained HTML page; the title names the promise that
/// it breaks.
pub fn diagram(title: &str, trace: &Trace) -> String {
    let text = escape(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{text}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{text}</h1>\n<p class=\"way\">{}</p>\n",
        way(trace)
    );
    if !trace.states.is_empty() {
        let sheet = Sheet::new(trace);
        out.push_str("<div class=\"scroll\">\n");
        sheet.draw(title, trace, &mut out);
        out.push_str("</div>\n");
        in_full(trace, &mut out);
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Where everything goes.
struct Sheet<'a> {
    lanes: Vec<&'a str>,
    lane_width: usize,
    lanes_end: usize,
    /// Characters that fit beside the lanes.
    columns: usize,
    rows: Vec<Row>,
    loop_to: Option<usize>,
    height: usize,
    has_second_heads: bool,
}

/// One state: its arrow and what it changed.
struct Row {
    top: usize,
    height: usize,
    notes: Vec<Note>,
}

/// A changed variable, in lines that fit, and in full if they do not show all of it.
struct Note {
    lines: Vec<String>,
    full: Option<String>,
}

impl<'a> Sheet<'a> {
    fn new(trace: &'a Trace) -> Sheet<'a> {
        let mut lanes: Vec<&str> = Vec::new();
        let named = trace.states.iter().flat_map(|state| [&state.actor, &state.target]);
        for name in named.flatten() {
            if !lanes.contains(&name.as_str()) {
                lanes.push(name);
            }
        }
        if lanes.is_empty() {
            lanes.push("the system");
        }
        let lane_width = (LANES.1 / lanes.len()).clamp(LANE.0, LANE.1);
        let lane_width = lane_width.max(LANES.0 / lanes.len().max(2));
        let lanes_end = GUTTER + (lane_width * lanes.len()).max(LANES.0);
        let columns = (PAGE.saturating_sub(lanes_end + 24) / 8).max(48);
        let loop_to = trace.loop_to.map(|to| to.min(trace.states.len() - 1));
        let mut sheet = Sheet {
            lanes,
            lane_width,
            lanes_end,
            columns,
            rows: Vec::new(),
            loop_to,
            height: 0,
            has_second_heads: false,
        };
        sheet.place(trace);
        sheet
    }

    fn place(&mut self, trace: &Trace) {
        let last = trace.states.len() - 1;
        let mut y = HEAD + 14;
        for (place, state) in trace.states.iter().enumerate() {
            if place > 0 && self.loop_to == Some(place - 1) {
                y += LOOP_TOP;
            }
            let before = place.checked_sub(1).map(|before| &trace.states[before]);
            let notes = notes(before, state, self.columns);
            let lines: usize = notes.iter().map(|note| note.lines.len()).sum();
            let height = (lines * LINE + 26).max(62);
            self.rows.push(Row { top: y, height, notes });
            y += height;
            if place == last {
                y += FOOT;
            }
        }
        self.has_second_heads = y > 1000;
        self.height = y + if self.has_second_heads { HEAD + 20 } else { 14 };
    }

    /// The middle of the lane.
    fn x(&self, lane: &str) -> usize {
        let place = self.lanes.iter().position(|known| *known == lane).unwrap_or(0);
        GUTTER + place * self.lane_width + self.lane_width / 2
    }

    fn width(&self) -> usize {
        self.lanes_end + 24 + self.columns * 8
    }

    /// Writing to a string cannot fail: results of `write!` are dropped here and below.
    fn draw(&self, title: &str, trace: &Trace, out: &mut String) {
        let (width, height) = (self.width(), self.height);
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<defs><marker id=\"tip\" \
             viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" \
             orient=\"auto\"><path d=\"M0 0L10 5L0 10z\"/></marker></defs>"
        );
        self.frame(title, out);
        let foot = self.rows.last().map_or(0, |row| row.top + row.height + FOOT);
        for lane in &self.lanes {
            let x = self.x(lane);
            let _ = writeln!(out, "<path class=\"life\" d=\"M{x} {HEAD}V{foot}\"/>");
        }
        self.heads(0, out);
        if self.has_second_heads {
            self.heads(foot + 6, out);
        }
        for (place, (row, state)) in self.rows.iter().zip(&trace.states).enumerate() {
            if place + 1 == self.rows.len() && self.has_broken_state() {
                out.push_str("<g class=\"bad\">\n");
            } else {
                out.push_str("<g>\n");
            }
            self.row(place, row, state, out);
            if place + 1 == self.rows.len() {
                self.verdict(title, out);
            }
            out.push_str("</g>\n");
        }
        out.push_str("</svg>\n");
    }

    fn heads(&self, top: usize, out: &mut String) {
        let width = self.lane_width - 10;
        for lane in &self.lanes {
            let (x, characters) = (self.x(lane), (width - 8) / 8);
            let left = x - width / 2;
            let mut lines = wrap(lane, characters);
            if lines.len() > 2 {
                lines.truncate(2);
                lines[1] = cut(&format!("{}……", lines[1]), characters).replace("……", "…");
            }
            let _ = write!(
                out,
                "<g class=\"head\"><title>{}</title>\
                 <rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{HEAD}\" rx=\"6\"/>",
                escape(lane)
            );
            let first = top + HEAD / 2 + 5 - (lines.len() - 1) * 8;
            for (place, line) in lines.iter().enumerate() {
                let y = first + place * 16;
                let _ = write!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", escape(line));
            }
            out.push_str("</g>\n");
        }
    }

    /// The first row of the loop, or else the last row of all.
    fn first_framed(&self) -> usize {
        let last = self.rows.len() - 1;
        self.loop_to.map_or(last, |to| (to + 1).min(last))
    }

    /// Whether it ends in a state that breaks the promise, not in a loop that does.
    fn has_broken_state(&self) -> bool {
        self.loop_to.is_none_or(|to| to + 1 == self.rows.len())
    }

    /// The ground under the state that breaks the promise, or around the loop that does.
    fn frame(&self, title: &str, out: &mut String) {
        let last = self.rows.len() - 1;
        let first = self.rows[self.first_framed()].top;
        let (class, top) = match self.has_broken_state() {
            true => ("broken", first),
            false => ("circle", first - LOOP_TOP + 6),
        };
        let bottom = self.rows[last].top + self.rows[last].height + FOOT - 4;
        let (width, height) = (self.width() - 8, bottom - top);
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"4\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
             rx=\"6\"><title>{}</title></rect>",
            escape(title)
        );
        if !self.has_broken_state() {
            let (bend, base) = (top + 20, top + 10);
            let _ = writeln!(
                out,
                "<path class=\"tab\" d=\"M4 {top}H92V{base}L82 {bend}H4z\"/>\
                 <text class=\"tabtext\" x=\"14\" y=\"{}\">for ever</text>",
                top + 15
            );
        }
    }

    /// The sentence at the foot of the frame.
    fn verdict(&self, title: &str, out: &mut String) {
        let last = self.rows.len() - 1;
        let sentence = match self.loop_to {
            None => format!("here it is broken: {title}"),
            Some(to) if to == last => format!("rests here for ever, which breaks: {title}"),
            Some(to) => format!("back to state {}, for ever, which breaks: {title}", to + 1),
        };
        let row = &self.rows[last];
        let y = row.top + row.height + FOOT - 14;
        let shown = cut(&sentence, (self.width() - GUTTER) / 8);
        let _ = writeln!(
            out,
            "<text class=\"verdict\" x=\"{GUTTER}\" y=\"{y}\"><title>{}</title>{}</text>",
            escape(&sentence),
            escape(&shown)
        );
    }

    fn row(&self, place: usize, row: &Row, state: &TraceState, out: &mut String) {
        let end = self.width() - 12;
        let base = row.top + row.height;
        if place + 1 < self.rows.len() && place + 1 != self.first_framed() {
            let _ = write!(out, "<path class=\"rule\" d=\"M12 {base}H{end}\"/>");
        }
        let y = row.top + ARROW;
        let _ = writeln!(out, "<text class=\"number\" x=\"24\" y=\"{}\">{}</text>", y, place + 1);
        self.arrow(y, state, out);
        let x = self.lanes_end + 20;
        let mut y = row.top + ARROW - 9;
        for note in &row.notes {
            out.push_str("<g class=\"note\">");
            if let Some(full) = &note.full {
                let _ = write!(out, "<title>{}</title>", escape(full));
            }
            for (place, line) in note.lines.iter().enumerate() {
                let x = if place == 0 { x } else { x + 16 };
                let _ = write!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", escape(line));
                y += LINE;
            }
            out.push_str("</g>\n");
        }
    }

    fn arrow(&self, y: usize, state: &TraceState, out: &mut String) {
        let Some(action) = &state.action else {
            let (from, to) = (GUTTER, self.lanes_end);
            let _ = writeln!(out, "<path class=\"start\" d=\"M{from} {y}H{to}\"/>");
            self.label("the start", (from + to) / 2, y + 4, out);
            return;
        };
        let from = self.x(state.actor.as_deref().unwrap_or(self.lanes[0]));
        let to = state.target.as_deref().map_or(from, |target| self.x(target));
        let path = if from == to {
            format!("M{from} {y}h26q6 0 6 6v2q0 6 -6 6H{}", from + 4)
        } else {
            let tip = if from < to { to - 1 } else { to + 1 };
            format!("M{from} {y}H{tip}")
        };
        let _ = writeln!(
            out,
            "<circle class=\"dot\" cx=\"{from}\" cy=\"{y}\" r=\"3.5\"/>\
             <path class=\"arrow\" d=\"{path}\" marker-end=\"url(#tip)\"/>"
        );
        self.label(action, (from + to) / 2, y - 9, out);
    }

    /// A text around `x` that stays within the lanes.
    fn label(&self, text: &str, x: usize, y: usize, out: &mut String) {
        let room = self.lanes_end - GUTTER;
        let shown = cut(text, room / 8);
        let half = shown.chars().count() * 4;
        let x = x.clamp(GUTTER + half, (self.lanes_end - half).max(GUTTER + half));
        let _ = writeln!(
            out,
            "<text class=\"label\" x=\"{x}\" y=\"{y}\"><title>{}</title>{}</text>",
            escape(text),
            escape(&shown)
        );
    }
}

/// What is written beside an arrow; beside the first state, its variables.
fn notes(before: Option<&TraceState>, state: &TraceState, columns: usize) -> Vec<Note> {
    let Some(before) = before else {
        let most = if state.state.0.len() > MOST_CHANGES { 1 } else { 2 };
        let variables = state.state.0.iter().map(|(name, value)| format!("{name} = {value}"));
        return variables.map(|text| note(&text, columns, most)).collect();
    };
    let changes: Vec<String> =
        changes(&before.state, &state.state).iter().map(ToString::to_string).collect();
    if changes.is_empty() {
        return vec![note("changes nothing", columns, 1)];
    }
    let shown = if changes.len() > MOST_CHANGES { MOST_CHANGES - 1 } else { changes.len() };
    let mut notes: Vec<Note> =
        changes[..shown].iter().map(|text| note(text, columns, MOST_LINES)).collect();
    if shown < changes.len() {
        let rest = &changes[shown..];
        let line = format!("… and {} more", rest.len());
        notes.push(Note { lines: vec![line], full: Some(rest.join("\n")) });
    }
    notes
}

fn note(text: &str, columns: usize, most: usize) -> Note {
    let mut lines = wrap(text, columns - 2);
    if lines.len() <= most {
        return Note { lines, full: None };
    }
    let rest = lines.split_off(most - 1).join(" ");
    lines.push(cut(&rest, columns - 2));
    Note { lines, full: Some(text.to_owned()) }
}

/// Every state with all its variables, folded away.
fn in_full(trace: &Trace, out: &mut String) {
    out.push_str("<h2>The states in full</h2>\n");
    for (place, state) in trace.states.iter().enumerate() {
        let action = state.action.as_deref().unwrap_or("the start");
        let _ =
            write!(out, "<details><summary>{}. {}</summary>\n<table>\n", place + 1, escape(action));
        for (name, value) in &state.state.0 {
            let (name, value) = (escape(name), escape(value));
            let _ = writeln!(out, "<tr><th>{name}</th><td>{value}</td></tr>");
        }
        out.push_str("</table></details>\n");
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not allowed in a document, whatever way they are written.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

const STYLE: &str = "
:root{color-scheme:light dark;--page:#fff;--text:#1c2430;--soft:#5b6675;--line:#c9d1dc;\
--rule:#e8ecf1;--box:#eef3fa;--arrow:#1f5fbf;--bad:#c62828;--badground:#fdecec}
@media(prefers-color-scheme:dark){:root{--page:#14181f;--text:#e4e9f0;--soft:#9aa6b6;--line:#465263;\
--rule:#262d38;--box:#1f2835;--arrow:#7db2ff;--bad:#ff8a80;--badground:#38191b}}
body{margin:24px;background:var(--page);color:var(--text);font:15px/1.45 system-ui,sans-serif}
h1{font-size:21px;margin:0;overflow-wrap:anywhere}
h2{font-size:16px;margin:28px 0 8px}
.way{margin:2px 0 18px;color:var(--soft)}
.scroll{overflow-x:auto}
svg{display:block}
svg text{font:13px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:var(--text);\
white-space:pre}
.head rect{fill:var(--box);stroke:var(--line)}
.head text{text-anchor:middle;font-weight:600}
.life{stroke:var(--line);stroke-dasharray:4 4;fill:none}
.rule{stroke:var(--rule);fill:none}
.start{stroke:var(--line);fill:none}
.arrow{stroke:var(--arrow);stroke-width:1.6;fill:none}
marker path,.dot{fill:var(--arrow)}
svg .number{fill:var(--soft);text-anchor:middle;dominant-baseline:central}
svg .label{text-anchor:middle;font-weight:600;paint-order:stroke;stroke:var(--page);\
stroke-width:5px;stroke-linejoin:round}
svg .note text{font-size:12.5px}
.broken{fill:var(--badground);stroke:var(--bad)}
.circle{fill:none;stroke:var(--bad);stroke-width:1.5}
.tab{fill:var(--bad)}
svg .tabtext{fill:var(--page);font-weight:600}
.bad{--page:var(--badground)}
svg .verdict{fill:var(--bad);font-weight:600;paint-order:stroke;stroke:var(--page);stroke-width:5px}
summary{cursor:pointer;padding:3px 0;font-family:ui-monospace,'DejaVu Sans Mono',monospace;\
font-size:13px}
table{margin:4px 0 12px 18px;border-collapse:collapse;font:13px/1.5 ui-monospace,\
'DejaVu Sans Mono',monospace}
th{text-align:left;vertical-align:top;padding:1px 18px 1px 0;font-weight:600;color:var(--soft)}
td{overflow-wrap:anywhere}
";

#[cfg(test)]
mod tests {
    use super::super::tests::{small, step};
    use super::*;

    #[test]
    fn lanes_stand_in_the_order_in_which_they_appear() {
        let trace = small(None);
        let sheet = Sheet::new(&trace);
        assert_eq!(sheet.lanes, ["client", "server a"]);
        assert!(sheet.x("client") < sheet.x("server a"));
        assert!(sheet.width() <= PAGE);
    }

    #[test]
    fn the_state_that_breaks_the_promise_is_marked() {
        let page = diagram("NoMail", &small(None));
        assert!(page.contains("<rect class=\"broken\""));
        assert!(page.contains("here it is broken: NoMail</text>"));
        assert!(page.contains(">seen[a]: TRUE -&gt; FALSE</text>"));
        assert!(!page.contains("for ever"));
    }

    #[test]
    fn a_loop_is_framed() {
        let page = diagram("Rests", &small(Some(1)));
        assert!(page.contains(">for ever</text>"));
        assert!(page.contains("back to state 2, for ever, which breaks: Rests</text>"));
        let page = diagram("Moves", &small(Some(3)));
        assert!(page.contains("rests here for ever, which breaks: Moves</text>"));
    }

    #[test]
    fn text_cannot_leave_its_place() {
        let evil = "</title><script>alert('x')</script>\u{1}&";
        let states = vec![
            step("", "", &[("x", evil)]),
            step(evil, &format!("{evil}>{evil}{evil}"), &[("x", "<<1>>")]),
        ];
        let page = diagram(evil, &Trace { states, loop_to: None });
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains('\u{1}'), "{page}");
        assert_eq!(escape("<a href=\"'&'\">"), "&lt;a href=&quot;&#39;&amp;&#39;&quot;&gt;");
    }

    #[test]
    fn what_does_not_fit_is_cut_and_kept_in_a_tooltip() {
        let long = format!("{{{}}}", vec!["\"member\""; 80].join(", "));
        let states = vec![step("", "", &[("x", "1")]), step("Grow", "a", &[("x", &long)])];
        let trace = Trace { states, loop_to: None };
        let sheet = Sheet::new(&trace);
        let note = &sheet.rows[1].notes[0];
        assert_eq!(note.lines.len(), MOST_LINES);
        assert!(note.lines.iter().all(|line| line.chars().count() <= sheet.columns));
        assert_eq!(note.full.as_deref(), Some(format!("x: 1 -> {long}").as_str()));
    }

    #[test]
    fn a_page_with_many_lanes_scrolls_instead_of_squeezing_them() {
        let actors: Vec<String> = (0..30).map(|n| format!("controller {n}>store {n}")).collect();
        let states = actors.iter().map(|by| step("Act", by, &[("x", "1")])).collect();
        let trace = Trace { states, loop_to: None };
        let sheet = Sheet::new(&trace);
        assert_eq!(sheet.lanes.len(), 60);
        assert_eq!(sheet.lane_width, LANE.0);
    }

    #[test]
    fn one_state_and_none_at_all_are_pages() {
        let one = Trace { states: vec![step("", "", &[("x", "1")])], loop_to: None };
        assert!(diagram("P", &one).contains("here it is broken: P"));
        assert!(diagram("P", &Trace { loop_to: Some(0), ..one }).contains("rests here for ever"));
        for loop_to in [None, Some(0), Some(3)] {
            let page = diagram("P", &Trace { states: Vec::new(), loop_to });
            assert!(page.contains("no states") && !page.contains("<svg"), "{page}");
        }
    }
}
