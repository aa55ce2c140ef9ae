"""Site profiles -> SiteProfile."""
