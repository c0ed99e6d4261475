"""A matrix: candidates to serve one application, of which playbooks/matrix.yml finds the best."""
