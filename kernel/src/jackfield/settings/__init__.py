"""The settings of a deployment: how plugins declare them, how they are read, where they come from."""

from jackfield.settings.declaration import (
    EnvironmentVariable,
    Format,
    Help,
    HttpUrl,
    NonEmpty,
    Seconds,
    SettingDescription,
    describe_settings,
)
from jackfield.settings.reader import SettingsError, SettingsFaults, parse_settings, read_settings, suggest
from jackfield.settings.sources import (
    AUTO,
    CONFIG_FILE,
    KEYS,
    SECTIONS,
    TABLES,
    KernelSettings,
    Settings,
    config_path,
    merge_tables,
    read_config,
    read_environment,
)

__all__ = [
    "AUTO", "CONFIG_FILE", "KEYS", "SECTIONS", "TABLES", "EnvironmentVariable", "Format", "Help", "HttpUrl",
    "KernelSettings", "NonEmpty", "Seconds", "SettingDescription", "Settings", "SettingsError",
    "SettingsFaults", "config_path", "describe_settings", "merge_tables", "parse_settings", "read_config",
    "read_environment", "read_settings", "suggest",
]  # fmt: skip
