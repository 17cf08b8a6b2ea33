package org.sparkfp4.plan;

import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.sparkfp4.checkpoint.Role;

/** Which layers {@code --targets} quantizes. */
public enum Targets {
  EXPERTS(EnumSet.of(Role.ROUTED_EXPERT)),
  MLP(EnumSet.of(Role.ROUTED_EXPERT, Role.SHARED_EXPERT, Role.DENSE_MLP)),
  LINEARS(EnumSet.of(
      Role.ROUTED_EXPERT, Role.SHARED_EXPERT, Role.DENSE_MLP, Role.ATTENTION, Role.LATENT_ATTENTION));

  private final Set<Role> roles;

  Targets(Set<Role> roles) {
    this.roles = roles;
  }

  /**
   * The targets of that name.
   *
   * @throws IllegalArgumentException if there are none; the message lists the names
   */
  public static Targets named(String name) {
    for (Targets targets : values()) {
      if (targets.optionName().equals(name)) {
        return targets;
      }
    }

    throw new IllegalArgumentException("Invalid targets: " + name + "; known are "
        + String.join(", ", List.of(values()).stream().map(Targets::optionName).toList()));
  }

  /** The name that {@code --targets} takes. */
  public String optionName() {
    return name().toLowerCase(Locale.ROOT);
  }

  boolean include(Role role) {
    return roles.contains(role);
  }
}
