"""What `deploy/` holds for others to run: the Helm chart, the manifests that are made of it, and systemd's units."""
