"""JobSpec + SiteProfile -> LaunchPlan; pure, every value with its origin and its reason."""
