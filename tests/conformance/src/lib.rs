//! Other people's clients against the API server: the tests are in `tests/`.
