package org.sparkfp4.verify;

import java.util.List;

/** Modules of which a configuration file says that they are stored in a form of the source. */
record StoredClaim(StoredForm form, List<ModulePattern> modules) {
  StoredClaim {
    modules = List.copyOf(modules);
  }

  boolean includes(String module) {
    return modules.stream().anyMatch(pattern -> pattern.excludes(module));
  }
}
