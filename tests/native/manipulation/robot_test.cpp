// The arm's data, poses of its links, and collisions: known answers for the Panda, and properties over random
// states.
#include "manipulation/robot/robot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <thread>

#include "base/error.h"
#include "manipulation/robot/stage.h"

namespace perflab::manipulation {
namespace {

std::shared_ptr<const Model> panda(const std::string& scene = "empty") { return Model::load("panda", scene); }

TEST(Robot, HasTheLimitsOfThePanda) {
  const auto model = panda();
  EXPECT_EQ(model->joints().size(), 7U);
  EXPECT_EQ(model->joints().front(), "panda_joint1");
  EXPECT_EQ(model->hand_joint(), "panda_finger_joint1");
  EXPECT_DOUBLE_EQ(model->hand_open(), 0.04);
  const std::span<const JointLimits> limits = model->limits();
  EXPECT_DOUBLE_EQ(limits[3].lower, -3.0718);
  EXPECT_DOUBLE_EQ(limits[3].upper, -0.0698);
  EXPECT_DOUBLE_EQ(limits[0].velocity, 2.175);
  EXPECT_DOUBLE_EQ(limits[6].velocity, 2.61);
  EXPECT_DOUBLE_EQ(limits[1].acceleration, 1.875);
  EXPECT_DOUBLE_EQ(limits[0].effort, 87.0);
  EXPECT_DOUBLE_EQ(limits[6].effort, 12.0);
}

TEST(Robot, ReadyHasTheFlangeWhereTheRealArmHasIt) {
  const auto model = panda();
  State state(model);
  state.set(model->named_state("ready"));
  const Pose flange = state.pose(model->flange());
  EXPECT_NEAR(flange.translation().x(), 0.30689, 1e-4);
  EXPECT_NEAR(flange.translation().y(), 0.0, 1e-9);
  EXPECT_NEAR(flange.translation().z(), 0.59028, 1e-4);
  // The hand points down; its tip is 0.1034 m below the flange.
  const Pose tip = state.pose(model->tip());
  EXPECT_NEAR(tip.translation().z(), flange.translation().z() - 0.1034, 1e-6);
  EXPECT_NEAR((flange.linear() * Eigen::Vector3d::UnitZ()).z(), -1.0, 1e-9);
  EXPECT_TRUE(state.pose(model->base()).isApprox(Pose::Identity()));
}

TEST(Robot, NamesThatDoNotExistAreRefusedWithThoseThatDo) {
  EXPECT_THROW(Model::load("panda", "no_such_scene"), BadInput);
  EXPECT_THROW(Model::load("no_such_robot", "empty"), BadInput);
  const auto model = panda();
  EXPECT_THROW(static_cast<void>(model->named_state("nowhere")), BadInput);
  try {
    static_cast<void>(model->link("panda_link9"));
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("panda_link8"), std::string::npos) << error.what();
  }
  State state(model);
  EXPECT_THROW(state.set(std::vector<double>(6)), BadInput);
}

TEST(Robot, FramesFormTheTreeOfLinks) {
  const auto model = panda();
  ASSERT_EQ(model->frames().size(), 12U);
  EXPECT_EQ(model->frames().front().parent, "panda_link0");
  EXPECT_EQ(std::count_if(model->frames().begin(), model->frames().end(), [](const auto& each) { return each.fixed; }), 3);
}

TEST(Robot, JacobianIsTheDerivativeOfPose) {
  const auto model = panda();
  State state(model);
  SplitMix64 random(7);
  constexpr double kStep = 1e-6;
  for (int round = 0; round < 50; ++round) {
    const Positions at = random_positions(*model, random);
    state.set(at);
    const Jacobian jacobian = state.jacobian(model->tip());
    for (std::size_t joint = 0; joint < at.size(); ++joint) {
      Positions before = at, after = at;
      before[joint] -= kStep;
      after[joint] += kStep;
      state.set(before);
      const Pose first = state.pose(model->tip());
      state.set(after);
      const Pose second = state.pose(model->tip());
      const Eigen::Vector3d way = (second.translation() - first.translation()) / (2.0 * kStep);
      const Eigen::AngleAxisd turn(Eigen::Matrix3d(second.linear() * first.linear().transpose()));
      const Eigen::Vector3d rate = turn.angle() * turn.axis() / (2.0 * kStep);
      const auto column = static_cast<Eigen::Index>(joint);
      EXPECT_LT((jacobian.col(column).head<3>() - way).norm(), 1e-5);
      EXPECT_LT((jacobian.col(column).tail<3>() - rate).norm(), 1e-5);
    }
  }
}

TEST(Robot, InverseKinematicsReachesWhereTheArmCanBe) {
  const auto model = panda();
  State state(model);
  const InverseKinematics ik(model, model->flange());
  SplitMix64 random(11);
  int reached = 0;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    state.set(random_positions(*model, random));
    const Pose target = state.pose(model->flange());
    const std::vector<Positions> solutions = ik.solutions(state, target, 1, random, 20);
    if (solutions.empty()) continue;
    ++reached;
    EXPECT_TRUE(within_limits(*model, solutions.front()));
    state.set(solutions.front());
    const Pose at = state.pose(model->flange());
    EXPECT_LT((at.translation() - target.translation()).norm(), 1e-5);
    EXPECT_LT(angle_between(at, target), 1e-4);
  }
  EXPECT_GE(reached, kRounds - 2);
}

TEST(Robot, InverseKinematicsHasSeveralSolutionsAndTheSameForTheSameSeed) {
  const auto model = panda();
  State state(model);
  const InverseKinematics ik(model, model->flange());
  const Pose target = pose_of({0.4, 0.2, 0.5}, 0.707, 0.707, 0.0, 0.0);
  SplitMix64 first(3), second(3);
  const std::vector<Positions> solutions = ik.solutions(state, target, 8, first);
  EXPECT_EQ(solutions.size(), 8U);
  EXPECT_EQ(solutions, ik.solutions(state, target, 8, second));
  // Out of reach.
  EXPECT_TRUE(ik.solutions(state, pose_of({2.0, 0.0, 0.5}, 0.0, 0.0, 0.0, 1.0), 1, first).empty());
}

TEST(Robot, HomeIsFreeInEveryScene) {
  for (const char* scene : {"empty", "table", "obstacle", "shelf", "pick_and_place"}) {
    const auto model = panda(scene);
    State state(model);
    state.set(model->named_state("home"));
    EXPECT_FALSE(state.collides()) << scene << ": " << state.contact()->first << " " << state.contact()->second;
    const auto nearest = state.nearest(1.0);
    ASSERT_TRUE(nearest.has_value());
    EXPECT_GT(nearest->distance, 0.02) << scene << ": " << nearest->first << " " << nearest->second;
  }
}

TEST(Robot, AFoldedArmTouchesItself) {
  const auto model = panda();
  State state(model);
  state.set(Positions{0.0, 1.7, 0.0, -3.0, 0.0, 0.0, 0.0});
  const auto contact = state.contact();
  ASSERT_TRUE(contact.has_value());
  EXPECT_LT(contact->distance, 0.0);
  EXPECT_TRUE(state.collides());
}

TEST(Robot, TheTableIsTouchedWhereItIs) {
  const auto model = panda("table");
  State state(model);
  const InverseKinematics ik(model, model->tip());
  SplitMix64 random(5);
  const auto touch = [&](double height) {
    const auto solutions = ik.solutions(state, pose_of({0.5, 0.0, height}, 1.0, 0.0, 0.0, 0.0), 1, random, 50);
    EXPECT_FALSE(solutions.empty());
    state.set(solutions.front());
    return state.contact();
  };
  EXPECT_FALSE(touch(0.22).has_value());
  const auto contact = touch(0.19);
  ASSERT_TRUE(contact.has_value());
  EXPECT_TRUE(contact->first == "table" || contact->second == "table");
  state.allow("table", "panda_leftfinger");
  state.allow("panda_rightfinger", "table");
  EXPECT_FALSE(state.collides());
  state.forbid("panda_rightfinger", "table");
  EXPECT_TRUE(state.collides());
}

TEST(Robot, ContactAndNearestAgree) {
  const auto model = panda("shelf");
  State state(model);
  SplitMix64 random(13);
  int collisions = 0;
  for (int round = 0; round < 300; ++round) {
    state.set(random_positions(*model, random));
    const auto nearest = state.nearest(0.5);
    const bool collides = state.collides();
    collisions += collides ? 1 : 0;
    // Both algorithms approximate convex shapes to 1e-6 m.
    if (collides) {
      ASSERT_TRUE(nearest.has_value());
      EXPECT_LT(nearest->distance, 1e-5);
    } else if (nearest.has_value()) {
      EXPECT_GT(nearest->distance, -1e-5) << nearest->first << " " << nearest->second;
    }
  }
  EXPECT_GT(collisions, 10);
  EXPECT_LT(collisions, 290);
}

TEST(Robot, AnAttachedBoxGoesWithTheHandAndCollidesInItsPlace) {
  const auto model = panda("pick_and_place");
  State state(model);
  state.set(model->named_state("home"));
  EXPECT_THROW(state.attach("table", model->tip()), BadInput);
  state.attach("workpiece", model->tip(), Pose::Identity());
  EXPECT_FALSE(state.collides()) << state.contact()->first << " " << state.contact()->second;
  EXPECT_TRUE(state.object("workpiece").isApprox(state.pose(model->tip())));
  const InverseKinematics ik(model, model->tip());
  SplitMix64 random(5);
  // The box is 0.08 m high: it reaches the table before the fingers do.
  const auto solutions = ik.solutions(state, pose_of({0.5, 0.0, 0.235}, 1.0, 0.0, 0.0, 0.0), 1, random, 50);
  ASSERT_FALSE(solutions.empty());
  state.set(solutions.front());
  const auto contact = state.contact();
  ASSERT_TRUE(contact.has_value());
  EXPECT_TRUE((contact->first == "table" && contact->second == "workpiece") ||
              (contact->first == "workpiece" && contact->second == "table"));
  State copy(state);
  EXPECT_EQ(copy.attached(), std::vector<std::string>{"workpiece"});
  EXPECT_TRUE(copy.collides());
  state.detach("workpiece");
  const Pose left = state.object("workpiece");
  state.set(model->named_state("home"));
  EXPECT_TRUE(state.object("workpiece").isApprox(left));
}

TEST(Robot, EachThreadHasItsState) {
  const auto model = panda("shelf");
  const auto count = [&](std::uint64_t seed) {
    State state(model);
    SplitMix64 random(seed);
    int found = 0;
    for (int round = 0; round < 500; ++round) {
      state.set(random_positions(*model, random));
      found += state.collides() ? 1 : 0;
    }
    return found;
  };
  const int alone[2] = {count(1), count(2)};
  int together[2] = {0, 0};
  std::thread first([&] { together[0] = count(1); }), second([&] { together[1] = count(2); });
  first.join();
  second.join();
  EXPECT_EQ(alone[0], together[0]);
  EXPECT_EQ(alone[1], together[1]);
}

// The parts of a film of a trial: the same bodies, and a column for each of MuJoCo's position numbers.
TEST(Stage, HasEachLinkWithItsMeshAndEachObject) {
  const auto model = panda("pick_and_place");
  const Stage stage = stage_of(*model);
  EXPECT_EQ(stage.columns.size(), 7U + 2U + 7U);  // joints, fingers, and the workpiece, which moves freely
  EXPECT_EQ(stage.columns.front(), "panda_joint1");
  EXPECT_EQ(stage.columns[9], "workpiece.x");
  EXPECT_EQ(stage.scene["tip"], "panda_hand_tcp");
  std::map<std::string, nlohmann::json> bodies;
  for (const auto& body : stage.scene["bodies"]) {
    EXPECT_TRUE(!body.contains("parent") || bodies.contains(body["parent"])) << "a child comes before " << body["parent"];
    bodies[body["name"]] = body;
  }
  EXPECT_EQ(bodies.at("panda_link1")["joint"]["kind"], "turn");
  EXPECT_EQ(bodies.at("panda_leftfinger")["joint"]["kind"], "slide");
  EXPECT_EQ(bodies.at("workpiece")["joint"]["kind"], "free");
  EXPECT_EQ(bodies.at("workpiece")["shapes"][0]["box"], (nlohmann::json{0.05, 0.05, 0.08}));
  const nlohmann::json& mesh = bodies.at("panda_link1")["shapes"][0]["mesh"];
  const auto corners = static_cast<int>(mesh["points"].size() / 3);
  EXPECT_GT(corners, 50);
  for (const int corner : mesh["faces"]) EXPECT_TRUE(0 <= corner && corner < corners);
}

}  // namespace
}  // namespace perflab::manipulation
