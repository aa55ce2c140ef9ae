"""What every subject needs: errors, files, text, units, values, processes, plug-ins."""
