"""What whoever runs a host looks at: conversations, figures, the audit, what policies decided."""
