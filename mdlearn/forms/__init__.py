"""Forms: all that passes between an objective and an engine, and the certificate computed from them."""
