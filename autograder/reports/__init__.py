"""What people read afterwards: feedback, dashboard, exports."""
