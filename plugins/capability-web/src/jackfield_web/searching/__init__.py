"""Search by a provider that the deployment names."""
