"""Site profiles -> SiteProfile.

Here: the search path, inheritance, validation and sources of profiles.
Not here: what a profile means for a job (`plans`), the profiles themselves (`site_profiles/`).
"""
