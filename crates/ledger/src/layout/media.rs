//! On which media a class moves what.

use discnice_units::{Bytes, Moment};

use crate::layout::Class;

impl Class {
    /// The media of the board that the class's files are on, one bit for each.
    pub(crate) fn media(&self) -> u32 {
        self.places.all()
    }

    /// Notes that the class has moved so much at this place of the board's media.
    pub fn note_medium(&self, place: usize, moved: Bytes) {
        self.places.note(place, moved);
    }

    /// What the class has moved lately that was noted at no place: nothing if that is the smaller part.
    #[must_use]
    pub fn unplaced(&self) -> Bytes {
        self.places.unplaced(self.total().total())
    }

    /// Forgets media that the class uses no more.
    pub(crate) fn age_media(&self, now: Moment) {
        self.places.age(now, self.total().total());
    }

    /// The number of the epoch, from 1 to 15 in turn, in which what is found of a file's medium holds.
    #[must_use]
    pub fn media_epoch(&self) -> u8 {
        self.places.epoch()
    }

    /// The place of the medium of a file system, as stat(2) numbers it: `find` is asked unless it was the last one of this
    /// epoch.
    pub fn medium_of(&self, device: u64, find: impl FnOnce() -> usize) -> usize {
        let places = &self.places;
        places.of_device(device).unwrap_or_else(|| {
            let place = find();
            places.set_device(device, place);
            place
        })
    }
}
