"""The pages and tables that people read after grading: feedback, dashboard, exports."""
