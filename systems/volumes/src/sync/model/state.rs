//! The state: the object and what is known of it, its syncs, their movers and images.

use interlock_checker::{Coder, Rng};

/// What fits in the packed state.
pub(super) const MOST_TAGS: usize = 3;
pub(super) const MOST_FAULTS: u8 = 3;
/// Attempts of a sync in this world; the controllers are told which one is the last.
pub(super) const ATTEMPTS: usize = 2;

/// The intent on the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Intent {
    pub(super) sync: u8,
    pub(super) tag: u8,
    /// From 0.
    pub(super) attempt: u8,
}

/// The object, in one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Record {
    /// `spec.trigger.manual`; 0: none yet.
    pub(super) tag: u8,
    pub(super) intent: Option<Intent>,
    /// The sync that the status says is over.
    pub(super) over: Option<u8>,
    /// `status.lastManualSync`.
    pub(super) answered: u8,
    /// The tag whose sync was given up.
    pub(super) given_up: u8,
    /// The image whose uid is published; for a source, its product.
    pub(super) latest: Option<u8>,
    /// The image that the status names.
    pub(super) named: Option<u8>,
    /// Whether somebody deleted it.
    pub(super) is_going: bool,
}

/// What the mover knows of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Attempt {
    #[default]
    Unknown,
    Runs,
    Done,
    /// Done, and there was nothing to bring.
    DoneEmpty,
    /// Failed, and may go well another time.
    FailedForNow,
    FailedForGood,
}

/// What is in a volume or an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Content {
    #[default]
    Nothing,
    /// Some of what is being written.
    Part,
    /// All of what there was when this tag was set, and maybe that is nothing.
    Whole { tag: u8, is_empty: bool },
}

/// A VolumeSnapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Image {
    #[default]
    None,
    /// Being taken.
    Asked,
    Ready(Content),
    Gone,
}

/// A VolumeSnapshot as it is seen: with what is in it, which does not change once it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Shown {
    #[default]
    Absent,
    Asked,
    Ready,
}

/// What the controller has in hand in the middle of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Hand {
    #[default]
    Nothing,
    /// What the mover answered.
    Asked(Attempt, bool),
    /// That, and then what the object and its image were.
    Looked(Attempt, bool),
    /// A flaw: the mover has begun, and the intent comes next.
    Promised,
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) record: Record,
    /// The object as the cache shows it, and whether that is the newest version.
    pub(super) cached: Record,
    pub(super) is_cache_current: bool,
    pub(super) hand: Hand,
    /// The object as it was looked at, whether that is the newest version, and its image then.
    pub(super) looked: Record,
    pub(super) is_look_current: bool,
    pub(super) looked_image: Shown,
    /// Whether all images were listed with that look.
    pub(super) is_listed: bool,
    pub(super) movers: [[Attempt; ATTEMPTS]; MOST_TAGS],
    pub(super) images: [Image; MOST_TAGS],
    pub(super) shown: [Shown; MOST_TAGS],
    /// Which images are held, were ever held, and are held as the cache shows it, a bit each.
    pub(super) held: u8,
    pub(super) ever_held: u8,
    pub(super) shown_held: u8,
    /// Whether the object is no more.
    pub(super) is_gone: bool,
    /// The volume that a destination writes.
    pub(super) volume: Content,
    /// The tag that was set when the mover began to read.
    pub(super) reading: u8,
    /// Syncs so far: the next one has this number.
    pub(super) started: u8,
    pub(super) faults: u8,
    /// What the last sync that is done brought.
    pub(super) product: Content,
}

impl Image {
    pub(super) fn shown(self) -> Shown {
        match self {
            Image::None | Image::Gone => Shown::Absent,
            Image::Asked => Shown::Asked,
            Image::Ready(_) => Shown::Ready,
        }
    }
}

const ATTEMPT: [Attempt; 6] = [
    Attempt::Unknown,
    Attempt::Runs,
    Attempt::Done,
    Attempt::DoneEmpty,
    Attempt::FailedForNow,
    Attempt::FailedForGood,
];
const SHOWN: [Shown; 3] = [Shown::Absent, Shown::Asked, Shown::Ready];

fn code_option(value: &mut Option<u8>, coder: &mut Coder) {
    let mut number = value.map_or(0, |value| value + 1);
    coder.u8(&mut number, 2);
    *value = number.checked_sub(1);
}

impl Record {
    fn code(&mut self, coder: &mut Coder) {
        coder.u8(&mut self.tag, 2);
        let mut sync = self.intent.map(|intent| intent.sync);
        code_option(&mut sync, coder);
        let mut intent = self.intent.unwrap_or_default();
        coder.u8(&mut intent.tag, 2);
        coder.u8(&mut intent.attempt, 1);
        self.intent = sync.map(|sync| Intent { sync, ..intent });
        code_option(&mut self.over, coder);
        coder.u8(&mut self.answered, 2);
        coder.u8(&mut self.given_up, 2);
        code_option(&mut self.latest, coder);
        code_option(&mut self.named, coder);
        coder.bool(&mut self.is_going);
    }

    fn any(tags: usize, rng: &mut Rng) -> Record {
        let tag = |rng: &mut Rng| rng.below(tags + 1) as u8;
        let sync = |rng: &mut Rng| rng.flip().then(|| rng.below(tags) as u8);
        Record {
            tag: tag(rng),
            intent: rng.flip().then(|| Intent {
                sync: rng.below(tags) as u8,
                tag: tag(rng),
                attempt: rng.below(ATTEMPTS) as u8,
            }),
            over: sync(rng),
            answered: tag(rng),
            given_up: tag(rng),
            latest: sync(rng),
            named: sync(rng),
            is_going: rng.flip(),
        }
    }
}

impl Content {
    fn number(self) -> u8 {
        match self {
            Content::Nothing => 0,
            Content::Part => 1,
            Content::Whole { tag, is_empty } => 2 + 2 * tag + u8::from(is_empty),
        }
    }

    fn numbered(number: u8) -> Content {
        match number {
            0 => Content::Nothing,
            1 => Content::Part,
            more => Content::Whole { tag: (more - 2) / 2, is_empty: more % 2 == 1 },
        }
    }

    fn code(&mut self, coder: &mut Coder) {
        let mut number = self.number();
        coder.u8(&mut number, 4);
        *self = Content::numbered(number);
    }

    fn any(tags: usize, rng: &mut Rng) -> Content {
        Content::numbered(rng.below(4 + 2 * tags) as u8)
    }
}

impl Image {
    fn code(&mut self, coder: &mut Coder) {
        let mut number = match *self {
            Image::None => 0,
            Image::Asked => 1,
            Image::Gone => 2,
            Image::Ready(content) => 3 + content.number(),
        };
        coder.u8(&mut number, 4);
        *self = match number {
            0 => Image::None,
            1 => Image::Asked,
            2 => Image::Gone,
            more => Image::Ready(Content::numbered(more - 3)),
        };
    }

    fn any(tags: usize, rng: &mut Rng) -> Image {
        match rng.below(4) {
            0 => Image::None,
            1 => Image::Asked,
            2 => Image::Gone,
            _ => Image::Ready(Content::any(tags, rng)),
        }
    }
}

impl Hand {
    fn code(&mut self, coder: &mut Coder) {
        let (mut stage, mut answer, mut is_earlier) = match *self {
            Hand::Nothing => (0, Attempt::Unknown, false),
            Hand::Asked(answer, is_earlier) => (1, answer, is_earlier),
            Hand::Looked(answer, is_earlier) => (2, answer, is_earlier),
            Hand::Promised => (3, Attempt::Unknown, false),
        };
        coder.u8(&mut stage, 2);
        coder.of(&mut answer, &ATTEMPT);
        coder.bool(&mut is_earlier);
        *self = match stage {
            0 => Hand::Nothing,
            1 => Hand::Asked(answer, is_earlier),
            2 => Hand::Looked(answer, is_earlier),
            _ => Hand::Promised,
        };
    }
}

impl State {
    pub(super) fn code(&mut self, tags: usize, coder: &mut Coder) {
        self.record.code(coder);
        self.cached.code(coder);
        coder.bool(&mut self.is_cache_current);
        self.hand.code(coder);
        self.looked.code(coder);
        coder.bool(&mut self.is_look_current);
        coder.of(&mut self.looked_image, &SHOWN);
        coder.bool(&mut self.is_listed);
        for sync in 0..tags {
            for attempt in &mut self.movers[sync] {
                coder.of(attempt, &ATTEMPT);
            }
            self.images[sync].code(coder);
            coder.of(&mut self.shown[sync], &SHOWN);
        }
        for bits in [&mut self.held, &mut self.ever_held, &mut self.shown_held] {
            coder.u8(bits, tags as u32);
        }
        coder.bool(&mut self.is_gone);
        self.volume.code(coder);
        coder.u8(&mut self.reading, 2);
        coder.u8(&mut self.started, 2);
        coder.u8(&mut self.faults, 2);
        self.product.code(coder);
    }

    pub(super) fn any(tags: usize, faults: u8, rng: &mut Rng) -> State {
        let mut state = State {
            record: Record::any(tags, rng),
            cached: Record::any(tags, rng),
            is_cache_current: rng.flip(),
            volume: Content::any(tags, rng),
            reading: rng.below(tags + 1) as u8,
            started: rng.below(tags + 1) as u8,
            faults: rng.below(usize::from(faults) + 1) as u8,
            product: Content::any(tags, rng),
            held: rng.below(1 << tags) as u8,
            ever_held: rng.below(1 << tags) as u8,
            shown_held: rng.below(1 << tags) as u8,
            is_gone: rng.flip(),
            ..State::default()
        };
        for sync in 0..tags {
            for attempt in &mut state.movers[sync] {
                *attempt = ATTEMPT[rng.below(ATTEMPT.len())];
            }
            state.images[sync] = Image::any(tags, rng);
            state.shown[sync] = SHOWN[rng.below(SHOWN.len())];
        }
        state
    }

    /// What the mover knows of an attempt.
    pub(super) fn attempt(&mut self, sync: u8, attempt: u8) -> &mut Attempt {
        &mut self.movers[usize::from(sync)][usize::from(attempt)]
    }

    pub(super) fn image(&self, sync: u8) -> Image {
        self.images[usize::from(sync)]
    }

    pub(super) fn is_held(&self, image: usize) -> bool {
        self.held >> image & 1 == 1
    }

    pub(super) fn is_shown_held(&self, image: usize) -> bool {
        self.shown_held >> image & 1 == 1
    }

    /// The cache shows an image as it is.
    pub(super) fn show_image(&mut self, image: usize) {
        self.shown[image] = self.images[image].shown();
        let bit = 1 << image;
        self.shown_held = (self.shown_held & !bit) | (self.held & bit);
    }

    /// Whether the cache shows an image as it is.
    pub(super) fn is_image_current(&self, image: usize) -> bool {
        self.shown[image] == self.images[image].shown()
            && self.is_shown_held(image) == self.is_held(image)
    }

    pub(super) fn show(&self, tags: usize) -> Vec<(&'static str, String)> {
        let record = |record: &Record| {
            let intent = record.intent.map_or("none".to_owned(), |intent| {
                format!("s{} for tag {} attempt {}", intent.sync, intent.tag, intent.attempt + 1)
            });
            format!(
                "[tag |-> {}, intent |-> {intent:?}, over |-> {:?}, answered |-> {}, \
                 givenUp |-> {}, latest |-> {:?}, named |-> {:?}, going |-> {}]",
                record.tag,
                record.over,
                record.answered,
                record.given_up,
                record.latest,
                record.named,
                record.is_going
            )
        };
        vec![
            ("object", record(&self.record)),
            ("cached", format!("{} {}", self.is_cache_current, record(&self.cached))),
            ("hand", format!("{:?} {} {:?}", self.hand, self.is_look_current, self.looked_image)),
            ("looked", record(&self.looked)),
            ("movers", format!("{:?}", &self.movers[..tags])),
            ("images", format!("{:?}", &self.images[..tags])),
            ("shown", format!("{:?}", &self.shown[..tags])),
            ("held", format!("{:03b} seen {:03b}", self.held, self.shown_held)),
            ("gone", self.is_gone.to_string()),
            ("volume", format!("{:?} reading {}", self.volume, self.reading)),
            ("product", format!("{:?}", self.product)),
            ("started", self.started.to_string()),
            ("faults", self.faults.to_string()),
        ]
    }
}
