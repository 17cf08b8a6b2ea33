package org.sparkfp4.layouts;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.Role;

/** Sums up the errors of quantized layers by their roles. */
public final class RoleErrors {
  private final ModelFamily family;
  private final Map<Role, Sums> roles = new EnumMap<>(Role.class);

  public RoleErrors(ModelFamily family) {
    this.family = family;
  }

  /**
   * Adds a layer.
   *
   * @param module its name
   * @param sumSquares sum of the squares of its weights
   * @param squaredError sum of the squares of what quantization changed
   */
  public void add(String module, double sumSquares, double squaredError) {
    roles.computeIfAbsent(family.role(module + ".weight"), role -> new Sums()).add(module, sumSquares, squaredError);
  }

  /** One entry a role that has layers. */
  public List<RoleError> list() {
    return roles.entrySet().stream().map(entry -> entry.getValue().of(entry.getKey())).toList();
  }

  private static final class Sums {
    private long layers;
    private double sumSquares;
    private double squaredError;
    private double worst = -1;
    private String worstModule;

    void add(String module, double square, double error) {
      layers++;
      sumSquares += square;
      squaredError += error;
      double relative = relative(square, error);
      if (relative > worst) {
        worst = relative;
        worstModule = module;
      }
    }

    RoleError of(Role role) {
      return new RoleError(role.description(), layers, relative(sumSquares, squaredError), worst, worstModule);
    }

    /** A layer of zeros is exact. */
    private static double relative(double square, double error) {
      return square == 0 ? 0 : Math.sqrt(error / square);
    }
  }
}
