"""History -> request body, one file a wire: pure functions from a `Prompt` and repaired items to that wire's own words."""
